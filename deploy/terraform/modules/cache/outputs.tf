output "url_secret_arn" {
  value = module.url.arn
}

output "url_value_from" {
  value = module.url.value_from
}

output "member_ids" {
  description = "Of the nodes, as CloudWatch calls them."
  value       = ["${var.name}-001", "${var.name}-002"]
}

output "safety" {
  value = {
    in_transit = aws_elasticache_replication_group.this.transit_encryption_enabled
    at_rest    = aws_elasticache_replication_group.this.at_rest_encryption_enabled
    failover   = aws_elasticache_replication_group.this.automatic_failover_enabled
  }
}
