# One of Outlast's processes on Fargate: its log, its two roles, its task definition, and the service that keeps it
# running, or none for a task that is run by hand.

locals {
  full_name = "${var.name}-${var.service}"

  log = {
    logDriver = "awslogs"
    options = {
      "awslogs-group"         = aws_cloudwatch_log_group.this.name
      "awslogs-region"        = var.region
      "awslogs-stream-prefix" = "task"
    }
  }

  container = {
    name                   = "outlast"
    image                  = var.image
    essential              = true
    entryPoint             = ["outlast"]
    command                = var.command
    user                   = var.user
    readonlyRootFilesystem = true
    stopTimeout            = var.stop_seconds
    environment            = [for key, value in var.environment : { name = key, value = value }]
    secrets                = [for key, value_from in var.secrets : { name = key, valueFrom = value_from }]
    portMappings           = var.port == null ? [] : [{ containerPort = var.port, protocol = "tcp" }]
    logConfiguration       = local.log
    mountPoints            = var.scratch_path == null ? [] : [{ sourceVolume = "scratch", containerPath = var.scratch_path, readOnly = false }]

    # Handlers may start processes and leave them behind: somebody must reap them.
    linuxParameters = { initProcessEnabled = true, capabilities = { drop = ["ALL"] } }
  }

  containers = concat(
    [merge(local.container, var.health_command == null ? {} : {
      healthCheck = { command = var.health_command, interval = 30, timeout = 5, retries = 3, startPeriod = 60 }
    })],
    [for sidecar in var.sidecars : merge(sidecar, { logConfiguration = local.log })],
  )

  assume = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })

  start_statements = concat(
    [{
      Sid      = "Logs"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
      Resource = ["${aws_cloudwatch_log_group.this.arn}:*"]
    }],
    length(var.secret_arns) == 0 ? [] : [{
      Sid      = "Secrets"
      Effect   = "Allow"
      Action   = ["secretsmanager:GetSecretValue"]
      Resource = var.secret_arns
    }],
    length(var.ecr_repository_arns) == 0 ? [] : [
      {
        Sid      = "Images"
        Effect   = "Allow"
        Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        Resource = var.ecr_repository_arns
      },
      {
        Sid      = "Registry" # knows no resources
        Effect   = "Allow"
        Action   = ["ecr:GetAuthorizationToken"]
        Resource = ["*"]
      },
    ],
  )
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/outlast/${var.name}/${var.service}"
  retention_in_days = var.log_days
}

# What starts the task: reads its secrets, pulls its image, opens its log. The process itself never has this role.
resource "aws_iam_role" "start" {
  name               = "${local.full_name}-start"
  assume_role_policy = local.assume
}

resource "aws_iam_role_policy" "start" {
  name   = "start"
  role   = aws_iam_role.start.name
  policy = jsonencode({ Version = "2012-10-17", Statement = local.start_statements })
}

# What the processes may do at AWS themselves.
resource "aws_iam_role" "task" {
  name               = "${local.full_name}-task"
  assume_role_policy = local.assume
}

resource "aws_iam_role_policy" "task" {
  count = length(var.statements) > 0 ? 1 : 0

  name   = "task"
  role   = aws_iam_role.task.name
  policy = jsonencode({ Version = "2012-10-17", Statement = var.statements })
}

resource "aws_ecs_task_definition" "this" {
  family                   = local.full_name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  execution_role_arn       = aws_iam_role.start.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode(local.containers)

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.cpu_architecture
  }

  dynamic "volume" {
    for_each = var.scratch_path == null ? [] : ["scratch"]

    content {
      name = volume.value
    }
  }

  # Whoever rolls back goes to an earlier one.
  skip_destroy = true
}

resource "aws_ecs_service" "this" {
  count = var.tasks == null ? 0 : 1

  name             = var.service
  cluster          = var.cluster_arn
  task_definition  = aws_ecs_task_definition.this.arn
  desired_count    = var.tasks
  launch_type      = "FARGATE"
  platform_version = "1.4.0"
  propagate_tags   = "SERVICE"

  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = var.target_group_arn == null ? null : 60

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [var.security_group_id]
    assign_public_ip = false
  }

  dynamic "load_balancer" {
    for_each = var.target_group_arn == null ? [] : [var.target_group_arn]

    content {
      target_group_arn = load_balancer.value
      container_name   = local.container.name
      container_port   = var.port
    }
  }

  lifecycle {
    ignore_changes = [desired_count] # is autoscaling's once the service runs
  }

  depends_on = [aws_iam_role_policy.start, aws_iam_role_policy.task]
}
