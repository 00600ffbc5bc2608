# The processes. Each has its own roles: what it may do at AWS is what its code calls, and nothing else.

locals {
  environment = merge(
    {
      OUTLAST_TRANSPORT        = var.transport
      OUTLAST_LEASE_SECONDS    = tostring(var.lease_seconds)
      OUTLAST_SHUTDOWN_SECONDS = tostring(var.shutdown_seconds)
      OUTLAST_LOG_FORMAT       = "json"
      PYTHONDONTWRITEBYTECODE  = "1"
    },
    var.settings,
  )
  of_broker = merge(local.environment, local.has_sqs ? { OUTLAST_SQS_PREFIX = local.prefix, AWS_DEFAULT_REGION = var.region } : {})

  database_secret = { OUTLAST_DATABASE_URL = module.database.url_value_from }
  broker_secret   = local.has_redis ? { OUTLAST_REDIS_URL = module.cache[0].url_value_from } : {}
  api_secret      = { OUTLAST_API_TOKEN = module.api_token.value_from }

  secret_arns = merge(
    { OUTLAST_DATABASE_URL = module.database.url_secret_arn, OUTLAST_API_TOKEN = module.api_token.arn },
    local.has_redis ? { OUTLAST_REDIS_URL = module.cache[0].url_secret_arn } : {},
  )

  queue_arns = local.has_sqs ? module.queue[0].arns : {}
  look       = ["sqs:GetQueueAttributes", "sqs:GetQueueUrl"]

  list_statement = { Sid = "List", Effect = "Allow", Action = ["sqs:ListQueues"], Resource = ["*"] } # knows no resources
  relay_statements = local.has_sqs ? [
    { Sid = "Publish", Effect = "Allow", Action = concat(local.look, ["sqs:SendMessage"]), Resource = values(local.queue_arns) },
    local.list_statement,
  ] : []
  once_statements = local.has_sqs ? [
    { Sid = "Look", Effect = "Allow", Action = local.look, Resource = values(local.queue_arns) },
    local.list_statement,
  ] : []
  worker_statements = {
    for name, group in var.workers : name => local.has_sqs ? [{
      Sid      = "Consume"
      Effect   = "Allow"
      Action   = concat(local.look, ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"])
      Resource = [for queue in distinct(group.queues) : local.queue_arns[queue]]
    }] : []
  }

  healthy = ["CMD", "python", "-m", "workers.healthy"]

  handlers = distinct(flatten([for group in values(var.workers) : group.handlers]))

  # Small tasks that somebody runs and waits for. The operator's command is replaced by whoever runs it.
  once = {
    migrate = {
      command    = concat(["migrate"], flatten([for name in local.handlers : ["--handlers", name]]))
      secrets    = local.database_secret
      statements = []
    }
    operator = {
      command    = ["doctor"]
      secrets    = merge(local.database_secret, local.broker_secret)
      statements = local.once_statements
    }
  }
}

resource "aws_ecs_cluster" "this" {
  name = var.name

  # Autoscaling counts running tasks.
  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

module "api" {
  source = "./modules/service"

  name                = var.name
  service             = "api"
  region              = var.region
  cluster_arn         = aws_ecs_cluster.this.arn
  tasks               = var.api.tasks_min
  image               = var.image
  command             = ["api"]
  user                = var.container_user
  cpu                 = var.api.cpu
  memory              = var.api.memory
  cpu_architecture    = var.cpu_architecture
  environment         = merge(local.environment, { OUTLAST_API_HOST = "0.0.0.0", OUTLAST_API_PORT = tostring(local.api_port) })
  secrets             = merge(local.database_secret, local.api_secret)
  secret_arns         = [for name in ["OUTLAST_DATABASE_URL", "OUTLAST_API_TOKEN"] : local.secret_arns[name]]
  statements          = module.metrics.statements
  sidecars            = [module.metrics.sidecar]
  ecr_repository_arns = var.ecr_repository_arns
  stop_seconds        = 30
  health_command      = local.healthy
  port                = local.api_port
  target_group_arn    = module.edge.target_group_arn
  subnet_ids          = module.network.task_subnet_ids
  security_group_id   = module.network.security_group_ids["api"]
  log_days            = var.log_days
}

module "relay" {
  source = "./modules/service"

  name                = var.name
  service             = "relay"
  region              = var.region
  cluster_arn         = aws_ecs_cluster.this.arn
  tasks               = 2 # one leads, one stands by
  image               = var.image
  command             = ["relay"]
  health_command      = local.healthy
  user                = var.container_user
  cpu                 = var.relay.cpu
  memory              = var.relay.memory
  cpu_architecture    = var.cpu_architecture
  environment         = local.of_broker
  secrets             = merge(local.database_secret, local.broker_secret)
  secret_arns         = [for name in keys(merge(local.database_secret, local.broker_secret)) : local.secret_arns[name]]
  statements          = local.relay_statements
  ecr_repository_arns = var.ecr_repository_arns
  stop_seconds        = 30
  subnet_ids          = module.network.task_subnet_ids
  security_group_id   = module.network.security_group_ids["relay"]
  log_days            = var.log_days
}

module "worker" {
  source   = "./modules/service"
  for_each = var.workers

  name             = var.name
  service          = "worker-${each.key}"
  region           = var.region
  cluster_arn      = aws_ecs_cluster.this.arn
  tasks            = each.value.tasks_min
  image            = var.image
  command          = ["worker", "--processes", tostring(each.value.processes)]
  health_command   = local.healthy
  user             = var.container_user
  cpu              = each.value.cpu
  memory           = each.value.memory
  cpu_architecture = var.cpu_architecture
  environment = merge(local.of_broker, {
    OUTLAST_HANDLERS           = join(",", each.value.handlers)
    OUTLAST_QUEUES             = join(",", each.value.queues)
    OUTLAST_WORKER_CONCURRENCY = tostring(each.value.concurrency)
  })
  secrets             = merge(local.database_secret, local.broker_secret)
  secret_arns         = [for name in keys(merge(local.database_secret, local.broker_secret)) : local.secret_arns[name]]
  statements          = local.worker_statements[each.key]
  ecr_repository_arns = var.ecr_repository_arns
  stop_seconds        = ceil(var.shutdown_seconds) + local.stop_margin_seconds
  scratch_path        = var.worker_scratch_path
  subnet_ids          = module.network.task_subnet_ids
  security_group_id   = module.network.security_group_ids["worker"]
  log_days            = var.log_days
}

module "once" {
  source   = "./modules/service"
  for_each = local.once

  name                = var.name
  service             = each.key
  region              = var.region
  cluster_arn         = aws_ecs_cluster.this.arn
  image               = coalesce(var.migrate_image, var.image)
  command             = each.value.command
  user                = var.container_user
  cpu                 = 512
  memory              = 1024
  cpu_architecture    = var.cpu_architecture
  environment         = local.of_broker
  secrets             = each.value.secrets
  secret_arns         = [for name in keys(each.value.secrets) : local.secret_arns[name]]
  statements          = each.value.statements
  ecr_repository_arns = var.ecr_repository_arns
  stop_seconds        = 60
  subnet_ids          = module.network.task_subnet_ids
  security_group_id   = module.network.security_group_ids["once"]
  log_days            = var.log_days
}
