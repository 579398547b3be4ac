"""Mistral's models, whose servers speak OpenAI's protocol."""

from isthmus.models.openai import OpenAIModel

MODEL = OpenAIModel
