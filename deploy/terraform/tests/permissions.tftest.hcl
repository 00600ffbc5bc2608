# Least privilege: each process may do at AWS what its code calls.

mock_provider "aws" {
  source = "./tests/aws"
}

variables {
  region             = "eu-central-1"
  availability_zones = ["eu-central-1a", "eu-central-1b"]
  image              = "registry.example/outlast:1.0.0"
  collector_image    = "registry.example/collector:1.0.0"
  certificate_arn    = "arn:aws:acm:eu-central-1:111122223333:certificate/00000000-0000-0000-0000-000000000000"
  api_token          = "api-token-of-a-test-that-nobody-uses"
  database_password  = "password-of-a-test-that-nobody-uses"
  transport          = "sqs"
  workers            = { default = { handlers = ["some.handlers"] } }
}

run "sqs" {
  assert {
    condition     = !strcontains(jsonencode(module.api.task_statements), "sqs:")
    error_message = "the API reaches no broker"
  }

  assert {
    condition     = toset(flatten(module.api.task_statements[*].Action)) == toset(["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"])
    error_message = "the API's collector writes its log, and that is all"
  }

  assert {
    condition = toset(flatten(module.relay.task_statements[*].Action)) == toset([
      "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage", "sqs:ListQueues",
    ])
    error_message = "the relay sends and looks"
  }

  assert {
    condition = toset(flatten(module.worker["default"].task_statements[*].Action)) == toset([
      "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
    ])
    error_message = "a worker takes and answers, and sends nothing"
  }

  assert {
    condition     = length(module.once["migrate"].task_statements) == 0
    error_message = "a migration needs PostgreSQL alone"
  }

  assert {
    condition = alltrue([
      for statement in concat(module.relay.task_statements, module.worker["default"].task_statements, module.once["operator"].task_statements) :
      !contains(statement.Resource, "*") || statement.Action == ["sqs:ListQueues"]
    ])
    error_message = "only what knows no resources is allowed on all of them"
  }

  assert {
    condition = !strcontains(jsonencode([
      for task in [module.api, module.relay, module.worker["default"], module.once["operator"]] : task.task_statements
    ]), "CreateQueue")
    error_message = "queues are made here and nowhere else"
  }

  assert {
    condition = alltrue([
      for task in [module.api, module.relay, module.worker["default"], module.once["migrate"]] :
      !strcontains(jsonencode(task.task_statements), "secretsmanager")
    ])
    error_message = "who starts a task reads its secrets, never the task"
  }

  assert {
    condition = alltrue(flatten([
      for task in [module.api, module.relay, module.worker["default"], module.once["migrate"]] : [
        for statement in task.start_statements : !contains(statement.Resource, "*")
      ]
    ]))
    error_message = "what starts a task is bound to its own log and secrets"
  }
}

run "private_images" {
  variables {
    ecr_repository_arns = ["arn:aws:ecr:eu-central-1:111122223333:repository/outlast"]
  }

  assert {
    condition = toset([
      for statement in module.relay.start_statements : statement.Sid if contains(statement.Resource, "*")
    ]) == toset(["Registry"])
    error_message = "only the registry's own token knows no resources"
  }
}
