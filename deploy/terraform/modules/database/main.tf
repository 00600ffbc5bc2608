# PostgreSQL, the only record: a standby in another zone, encrypted, backed up, and hard to delete.
#
# No RDS Proxy: leading, liveness and listening need sessions of their own, which a proxy hands around.

locals {
  user     = "outlast"
  database = "outlast"
  tls      = var.ca_file == null ? "sslmode=require" : "sslmode=verify-full&sslrootcert=${urlencode(var.ca_file)}"
}

resource "aws_db_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_db_parameter_group" "this" {
  name_prefix = "${var.name}-"
  family      = "postgres${var.engine_version}"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_db_instance" "this" {
  identifier     = var.name
  engine         = "postgres"
  engine_version = var.engine_version
  instance_class = var.instance_class
  db_name        = local.database

  username            = local.user
  password_wo         = var.password
  password_wo_version = var.password_version

  multi_az               = true
  publicly_accessible    = false
  db_subnet_group_name   = aws_db_subnet_group.this.name
  vpc_security_group_ids = [var.security_group_id]
  parameter_group_name   = aws_db_parameter_group.this.name

  storage_type          = "gp3"
  storage_encrypted     = true
  allocated_storage     = var.storage_gb
  max_allocated_storage = var.storage_gb * 10

  backup_retention_period   = var.backup_days
  copy_tags_to_snapshot     = true
  delete_automated_backups  = false
  deletion_protection       = true
  skip_final_snapshot       = false
  final_snapshot_identifier = "${var.name}-final"

  auto_minor_version_upgrade      = true
  performance_insights_enabled    = true
  enabled_cloudwatch_logs_exports = ["postgresql"]
}

module "url" {
  source = "../secret"

  name          = "${var.name}/database-url"
  description   = "OUTLAST_DATABASE_URL"
  value         = "postgresql://${local.user}:${urlencode(var.password)}@${aws_db_instance.this.endpoint}/${local.database}?${local.tls}"
  value_version = var.password_version
}
