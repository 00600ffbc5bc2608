"""Finds the processes that may hold leases without reading those that ended long ago.

Neither column of the predicate changes with a heartbeat, so heartbeats stay within their page.

Revision ID: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX workers_unsettled ON workers (id) WHERE settled_at IS NULL OR left_at IS NULL")


def downgrade() -> None:
    raise RuntimeError("revisions are forward-only")
