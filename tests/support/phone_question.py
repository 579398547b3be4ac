"""A question about a change of a file as a phone shows it, and where on the screen its parts are."""

import json

OLD = "".join(f"line {number}\n" for number in range(1, 61))
NEW = OLD.replace("line 5\n", "line five\n").replace("line 40\n", "".join(f"new {number}\n" for number in range(30)))
CHANGE = {"file_path": "src/schedule.py", "content": NEW, "instruction": "Times without an offset are local"}
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Achange",
                "replies": [{"call": {"name": "write_file", "arguments": CHANGE}}, {"text": "It is over."}],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too
MEASURE = """() => {
    const box = selector => document.querySelector(`.asked ${selector}`).getBoundingClientRect();
    const [body, head] = [box(".card-body"), box(".dhead")];
    const root = document.querySelector(".asked isthmus-diff").shadowRoot;
    const line = [...root.querySelectorAll(".cm-line")].find(one => one.getBoundingClientRect().top >= head.bottom);
    return {
        share: (Math.min(body.bottom, box("isthmus-diff").bottom) - head.bottom) / innerHeight,
        heights: [".sheet-head", ".one", ".dhead"].map(selector => box(selector).height),
        tops: [".sheet-head", ".one", ".dhead", "isthmus-diff"].map(selector => box(selector).top),
        line: [line.textContent, line.getBoundingClientRect().top],
        foot: box("isthmus-reason, .asked .actions").bottom - (window.visualViewport?.height ?? innerHeight),
        width: document.documentElement.scrollWidth - innerWidth,
    };
}"""
"""Function that measures the question on the screen, in px: heights, places, and the part that is left to the diff."""
