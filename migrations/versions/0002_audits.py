"""What the leader's last look at the invariants found, a row each, for the metrics.

Revision ID: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE audits (
          invariant text NOT NULL PRIMARY KEY,
          findings int NOT NULL,
          taken_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )
        """
    )


def downgrade() -> None:
    raise RuntimeError("revisions are forward-only")
