"""What can go wrong before `outlast dev` is ready.

DevFailed
├── ServerBinariesMissing
├── ServerFailed
└── RoleFailed
"""

from __future__ import annotations

from app.domain.errors import OutlastError


class DevFailed(OutlastError):
    """`outlast dev` cannot start or go on."""


class ServerBinariesMissing(DevFailed):
    """No binaries of a server were found on this machine."""


class ServerFailed(DevFailed):
    """An embedded server did not start."""


class RoleFailed(DevFailed):
    """A process of the stack ends as often as it is started, or never becomes ready."""
