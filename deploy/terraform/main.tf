locals {
  api_port  = 8080
  zones     = var.availability_zones
  has_redis = var.transport == "redis"
  has_sqs   = var.transport == "sqs"
  queues    = toset(flatten([for group in values(var.workers) : group.queues]))
  prefix    = coalesce(var.sqs_prefix, "${var.name}-")

  stop_margin_seconds = 20 # a worker's: what ended is written, what did not is given back, children are reaped
}

module "network" {
  source = "./modules/network"

  name                = var.name
  region              = var.region
  cidr                = var.vpc_cidr
  availability_zones  = local.zones
  single_nat_gateway  = var.single_nat_gateway
  caller_cidrs        = coalesce(var.caller_cidrs, [var.vpc_cidr])
  api_port            = local.api_port
  cache               = local.has_redis
  worker_egress_ports = setsubtract(var.worker_egress_ports, [443])
}

module "database" {
  source = "./modules/database"

  name              = var.name
  subnet_ids        = module.network.data_subnet_ids
  security_group_id = module.network.security_group_ids["database"]
  engine_version    = var.database_engine_version
  instance_class    = var.database_instance_class
  storage_gb        = var.database_storage_gb
  backup_days       = var.database_backup_days
  password          = var.database_password
  password_version  = var.database_password_version
  ca_file           = var.database_ca_file
}

module "cache" {
  source = "./modules/cache"
  count  = local.has_redis ? 1 : 0

  name               = var.name
  subnet_ids         = module.network.data_subnet_ids
  security_group_id  = module.network.security_group_ids["cache"]
  node_type          = var.cache_node_type
  auth_token         = var.redis_auth_token
  auth_token_version = var.redis_auth_token_version
}

module "queue" {
  source = "./modules/queue"
  count  = local.has_sqs ? 1 : 0

  prefix        = local.prefix
  queues        = local.queues
  lease_seconds = var.lease_seconds
}

module "api_token" {
  source = "./modules/secret"

  name          = "${var.name}/api-token"
  description   = "OUTLAST_API_TOKEN"
  value         = var.api_token
  value_version = var.api_token_version
}

module "edge" {
  source = "./modules/edge"

  name               = var.name
  vpc_id             = module.network.vpc_id
  subnet_ids         = var.public ? module.network.public_subnet_ids : module.network.task_subnet_ids
  security_group_id  = module.network.security_group_ids["edge"]
  certificate_arn    = var.certificate_arn
  public             = var.public
  api_port           = local.api_port
  access_logs_bucket = var.access_logs_bucket
}

module "metrics" {
  source = "./modules/metrics"

  name                 = var.name
  region               = var.region
  image                = var.collector_image
  user                 = var.container_user
  api_port             = local.api_port
  api_token_value_from = module.api_token.value_from
  queues               = local.queues
}

module "alarms" {
  source = "./modules/alarms"

  name                = var.name
  namespace           = module.metrics.namespace
  queues              = local.queues
  emails              = var.alarm_emails
  dead_letters_max    = var.dead_letters_max
  database_identifier = module.database.identifier
  cache_member_ids    = flatten(module.cache[*].member_ids)
  dead_queue_names    = merge(module.queue[*].dead_names...)
  edge_arn_suffixes   = module.edge.arn_suffixes
}
