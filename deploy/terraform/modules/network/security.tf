# Who may talk to whom: every pair is named here, everything else is refused.

locals {
  groups = merge(
    {
      edge     = "The load balancer"
      api      = "API tasks"
      relay    = "Relay tasks"
      worker   = "Worker tasks"
      once     = "One-off tasks: migrations, operator commands"
      database = "PostgreSQL"
    },
    var.cache ? { cache = "ElastiCache" } : {},
  )

  pairs = concat(
    [{ from = "edge", to = "api", port = var.api_port }],
    [for from in ["api", "relay", "worker", "once"] : { from = from, to = "database", port = 5432 }],
    # The API has no way to the broker: nothing it answers for is there.
    [for from in ["relay", "worker", "once"] : { from = from, to = "cache", port = 6379 } if var.cache],
  )
  allowed = { for pair in local.pairs : "${pair.from} to ${pair.to}" => pair }

  callers = { for pair in setproduct(var.caller_cidrs, [80, 443]) : "${pair[0]} to ${pair[1]}" => pair }

  # To AWS itself (images, secrets, logs, SQS), and to wherever handlers call.
  outside = merge(
    { for from in ["api", "relay", "worker", "once"] : "${from} to 443" => { from = from, port = 443 } },
    { for port in var.worker_egress_ports : "worker to ${port}" => { from = "worker", port = port } },
  )
}

# The group that everything without one gets: it lets nothing in or out.
resource "aws_default_security_group" "nothing" {
  vpc_id = aws_vpc.this.id
}

resource "aws_security_group" "this" {
  for_each = local.groups

  name        = "${var.name}-${each.key}"
  description = each.value
  vpc_id      = aws_vpc.this.id

  tags = { Name = "${var.name}-${each.key}" }
}

resource "aws_vpc_security_group_egress_rule" "inside" {
  for_each = local.allowed

  security_group_id            = aws_security_group.this[each.value.from].id
  referenced_security_group_id = aws_security_group.this[each.value.to].id
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
  description                  = each.key
}

resource "aws_vpc_security_group_ingress_rule" "inside" {
  for_each = local.allowed

  security_group_id            = aws_security_group.this[each.value.to].id
  referenced_security_group_id = aws_security_group.this[each.value.from].id
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
  description                  = each.key
}

resource "aws_vpc_security_group_ingress_rule" "callers" {
  for_each = local.callers

  security_group_id = aws_security_group.this["edge"].id
  cidr_ipv4         = each.value[0]
  ip_protocol       = "tcp"
  from_port         = each.value[1]
  to_port           = each.value[1]
  description       = each.key
}

resource "aws_vpc_security_group_egress_rule" "outside" {
  for_each = local.outside

  security_group_id = aws_security_group.this[each.value.from].id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = each.key
}
