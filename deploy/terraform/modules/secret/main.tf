# A secret and its value, which is neither in the state nor in a plan.

resource "aws_secretsmanager_secret" "this" {
  name        = var.name
  description = var.description
}

resource "aws_secretsmanager_secret_version" "this" {
  secret_id                = aws_secretsmanager_secret.this.id
  secret_string_wo         = var.value
  secret_string_wo_version = var.value_version
}
