"""Python files of the user that declare custom tools with ``@companion.tool``, and how they are loaded."""

import importlib.util
import sys
from contextlib import redirect_stdout
from contextvars import ContextVar
from pathlib import Path

from isthmus.ide.mcp.custom_tools import CustomToolError, ToolRegistry

_collecting: ContextVar[ToolRegistry | None] = ContextVar("_collecting", default=None)


def collecting() -> ToolRegistry:
    """Return the registry of the companion that is loading a tool file; otherwise an unused registry.

    The unused registry is for files imported in another way, for instance by a test of the tools.
    """
    registry = _collecting.get()
    return ToolRegistry() if registry is None else registry


def load_tools(path: str, registry: ToolRegistry) -> None:
    """Run a Python file, and add the tools that it declares with ``@companion.tool`` to the registry.

    The file can import modules from its folder. Its output is redirected to standard error, because standard output
    belongs to the program and carries a protocol with some editors.

    Raises:
        CustomToolError: the file cannot be run, declares no tool, or declares a tool that cannot be offered.
    """
    file = Path(path).absolute()
    before = len(registry)
    spec = importlib.util.spec_from_file_location(f"isthmus_custom_tools_{len(sys.modules)}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise CustomToolError(f"--tools {path}: expected an existing Python file, its name ending in .py")
    module = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # last, so that its modules hide no others
    sys.modules[module.__name__] = module
    token = _collecting.set(registry)
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
        registry.listed()
    except CustomToolError as error:
        raise CustomToolError(f"--tools {path}: {error}") from error
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        reason = f"{_place(error, file)}{type(error).__name__}: {error}"
        raise CustomToolError(f"--tools {path} cannot be run: {reason}") from error
    finally:
        _collecting.reset(token)
    if len(registry) == before:
        raise CustomToolError(f"--tools {path}: there is no function with @companion.tool in it")


def _place(error: BaseException, file: Path) -> str:
    """Return ``line N: `` for the line of the file where the error occurred; empty if it occurred elsewhere."""
    if isinstance(error, SyntaxError):
        return ""  # its text contains the line
    lines: list[int] = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(file):
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return f"line {lines[-1]}: " if lines else ""
