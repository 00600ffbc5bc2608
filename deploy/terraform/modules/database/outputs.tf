output "identifier" {
  value = aws_db_instance.this.identifier
}

output "url_secret_arn" {
  value = module.url.arn
}

output "url_value_from" {
  value = module.url.value_from
}

output "safety" {
  description = "What stands between the record and its loss."
  value = {
    multi_az            = aws_db_instance.this.multi_az
    publicly_accessible = aws_db_instance.this.publicly_accessible
    storage_encrypted   = aws_db_instance.this.storage_encrypted
    deletion_protection = aws_db_instance.this.deletion_protection
    backup_days         = aws_db_instance.this.backup_retention_period
    final_snapshot      = !aws_db_instance.this.skip_final_snapshot
    tls_only            = contains([for one in aws_db_parameter_group.this.parameter : "${one.name}=${one.value}"], "rds.force_ssl=1")
  }
}
