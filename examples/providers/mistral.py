"""Mistral's models, whose servers speak OpenAI's protocol."""

from isthmus.models.openai.chat_completions import OpenAIModel

MODEL = OpenAIModel
