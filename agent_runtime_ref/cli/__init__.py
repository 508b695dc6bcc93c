"""The command `agent-runtime-ref`: one file a command, each imported only when it is called."""

from __future__ import annotations
