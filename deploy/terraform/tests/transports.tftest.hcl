# Which broker is made, and who gets to know of it.

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
  redis_auth_token   = "redisTokenOfATestThatNobodyUses00"
  workers            = { default = { handlers = ["some.handlers"] } }
}

run "redis" {
  assert {
    condition     = length(module.cache) == 1 && length(module.queue) == 0
    error_message = "transport redis makes an ElastiCache and no queue"
  }

  assert {
    condition     = alltrue(values(module.cache[0].safety))
    error_message = "the cache is encrypted and fails over"
  }

  assert {
    condition = alltrue([
      for task in [module.relay, module.worker["default"], module.once["operator"]] :
      contains(task.containers[0].secrets[*].name, "OUTLAST_REDIS_URL")
    ])
    error_message = "relay, workers and the operator know where Redis is"
  }

  assert {
    condition     = !contains(module.api.containers[0].secrets[*].name, "OUTLAST_REDIS_URL")
    error_message = "the API has no business with the broker"
  }

  assert {
    condition     = alltrue([for task in [module.relay, module.worker["default"], module.once["operator"]] : length(task.task_statements) == 0])
    error_message = "Redis needs no permission at AWS"
  }

  assert {
    condition     = contains(module.network.allowed, "worker to cache") && !contains(module.network.allowed, "api to cache")
    error_message = "who talks to Redis is let through, and nobody else"
  }
}

run "sqs" {
  variables {
    transport        = "sqs"
    redis_auth_token = null
    workers = {
      default = { handlers = ["some.handlers"] }
      mail    = { handlers = ["other.handlers"], queues = ["mail.urgent", "mail"] }
    }
  }

  assert {
    condition     = length(module.cache) == 0 && length(module.queue) == 1
    error_message = "transport sqs makes queues and no ElastiCache"
  }

  assert {
    condition     = module.queue[0].names == { default = "outlast-default", mail = "outlast-mail", "mail.urgent" = "outlast-mailDurgent" }
    error_message = "one for each queue that workers serve, named as the application names it"
  }

  assert {
    condition = alltrue([
      for task in [module.relay, module.worker["default"], module.worker["mail"], module.once["operator"]] :
      contains(task.containers[0].environment, { name = "OUTLAST_SQS_PREFIX", value = "outlast-" })
      && contains(task.containers[0].environment, { name = "AWS_DEFAULT_REGION", value = "eu-central-1" })
    ])
    error_message = "who speaks to SQS knows the prefix and the region"
  }

  assert {
    condition     = !anytrue([for allowed in module.network.allowed : strcontains(allowed, "cache")])
    error_message = "there is no cache to talk to"
  }

  assert {
    condition     = contains(keys(module.alarms.alarms), "dead-messages-mail_urgent")
    error_message = "a dead-letter queue that holds something wakes somebody"
  }
}

run "pg" {
  variables {
    transport        = "pg"
    redis_auth_token = null
  }

  assert {
    condition     = length(module.cache) == 0 && length(module.queue) == 0
    error_message = "transport pg makes no broker"
  }

  assert {
    condition = alltrue([
      for task in [module.relay, module.worker["default"], module.once["operator"]] :
      task.containers[0].secrets[*].name == ["OUTLAST_DATABASE_URL"] && length(task.task_statements) == 0
    ])
    error_message = "PostgreSQL is all they know"
  }
}
