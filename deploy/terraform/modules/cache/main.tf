# A hint and a doorbell: ids of jobs that PostgreSQL has anyway, so no snapshots. What is lost here is published again.

resource "aws_elasticache_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_elasticache_replication_group" "this" {
  replication_group_id = var.name
  description          = "Outlast's streams"
  engine               = "valkey"
  engine_version       = "8.0"
  node_type            = var.node_type

  num_cache_clusters         = 2
  automatic_failover_enabled = true
  multi_az_enabled           = true

  subnet_group_name  = aws_elasticache_subnet_group.this.name
  security_group_ids = [var.security_group_id]

  at_rest_encryption_enabled = true
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  auth_token                 = var.auth_token
  auth_token_update_strategy = "ROTATE"

  snapshot_retention_limit   = 0
  auto_minor_version_upgrade = true
  apply_immediately          = true
}

module "url" {
  source = "../secret"

  name          = "${var.name}/redis-url"
  description   = "OUTLAST_REDIS_URL"
  value         = "rediss://:${var.auth_token}@${aws_elasticache_replication_group.this.primary_endpoint_address}:6379/0"
  value_version = var.auth_token_version
}
