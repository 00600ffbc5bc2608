# What runs, how it stops, and what it is told.

mock_provider "aws" {
  source = "./tests/aws"
}

variables {
  region             = "eu-central-1"
  availability_zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
  image              = "registry.example/outlast:1.0.0"
  collector_image    = "registry.example/collector:1.0.0"
  certificate_arn    = "arn:aws:acm:eu-central-1:111122223333:certificate/00000000-0000-0000-0000-000000000000"
  api_token          = "api-token-of-a-test-that-nobody-uses"
  database_password  = "password-of-a-test-that-nobody-uses"
  redis_auth_token   = "redisTokenOfATestThatNobodyUses00"
  shutdown_seconds   = 100
  workers = {
    default = { handlers = ["some.handlers"] }
    mail    = { handlers = ["other.handlers", "some.handlers"], queues = ["mail.urgent", "mail"], processes = 2, concurrency = 10 }
  }
}

run "running" {
  assert {
    condition = alltrue(flatten([
      for task in concat([module.api, module.relay], values(module.worker), values(module.once)) : [
        for container in task.containers : [
          for variable in container.environment :
          !can(regex("PASSWORD|TOKEN|SECRET|DATABASE_URL|REDIS_URL", variable.name))
          && !strcontains(variable.value, "OfATestThatNobodyUses") && !strcontains(variable.value, "-of-a-test-that-nobody-uses")
        ]
      ]
    ]))
    error_message = "no container is told a secret in its environment"
  }

  assert {
    condition = alltrue(flatten([
      for task in concat([module.api, module.relay], values(module.worker), values(module.once)) : [
        for container in task.containers : [for secret in container.secrets : startswith(secret.valueFrom, "arn:aws:secretsmanager:")]
      ]
    ]))
    error_message = "secrets come from Secrets Manager"
  }

  assert {
    condition = alltrue(flatten([
      for task in concat([module.api, module.relay], values(module.worker), values(module.once)) : [
        for container in task.containers :
        container.readonlyRootFilesystem && !startswith(container.user, "0") && container.linuxParameters.capabilities.drop == ["ALL"]
      ]
    ]))
    error_message = "nothing runs as root, writes to its image or has capabilities"
  }

  assert {
    condition     = alltrue([for task in values(module.worker) : task.containers[0].stopTimeout == 120])
    error_message = "a worker has its shutdown_seconds and 20 s more before it is killed"
  }

  assert {
    condition     = module.api.containers[0].stopTimeout > 5 && module.relay.containers[0].stopTimeout > 5
    error_message = "requests under way get 5 seconds"
  }

  assert {
    condition     = alltrue(flatten([for task in concat([module.api, module.relay], values(module.worker)) : task.services[*].circuit_breaker]))
    error_message = "a deployment that does not come up is rolled back"
  }

  assert {
    condition     = !anytrue(flatten([for task in concat([module.api, module.relay], values(module.worker)) : task.services[*].public_ip]))
    error_message = "no task has an address on the internet"
  }

  assert {
    condition     = alltrue([for task in values(module.once) : length(task.services) == 0])
    error_message = "migrations and operator commands are run by hand"
  }

  assert {
    condition     = module.once["migrate"].containers[0].command == ["migrate", "--handlers", "some.handlers", "--handlers", "other.handlers"]
    error_message = "a migration publishes the kinds of every group, each module once"
  }

  assert {
    condition     = contains(module.worker["mail"].containers[0].environment, { name = "OUTLAST_QUEUES", value = "mail.urgent,mail" })
    error_message = "a group serves its own queues"
  }

  assert {
    condition     = contains(module.api.containers[0].environment, { name = "OUTLAST_API_HOST", value = "0.0.0.0" }) && contains(module.api.containers[0].secrets[*].name, "OUTLAST_API_TOKEN")
    error_message = "the API listens outside loopback, so it has a token"
  }
}

run "the_edge" {
  assert {
    condition     = module.edge.internal
    error_message = "nothing is on the internet unless it is asked for"
  }

  assert {
    condition     = module.edge.health_path == "/healthz"
    error_message = "an API that cannot reach PostgreSQL is not replaced for that"
  }

  assert {
    condition     = module.edge.idle_seconds > 60 && module.edge.idle_seconds < 75
    error_message = "longer than a caller may wait for a job, shorter than the API keeps a connection"
  }
}

run "the_record" {
  assert {
    condition = module.database.safety == {
      multi_az            = true
      publicly_accessible = false
      storage_encrypted   = true
      deletion_protection = true
      backup_days         = 14
      final_snapshot      = true
      tls_only            = true
    }
    error_message = "PostgreSQL is the only record"
  }

  assert {
    condition = toset([for allowed in module.network.allowed : allowed if endswith(allowed, "to database")]) == toset([
      "api to database", "once to database", "relay to database", "worker to database",
    ])
    error_message = "only Outlast's processes reach PostgreSQL"
  }
}

run "scaling" {
  assert {
    condition     = module.autoscaling["mail"].limits == [2, 20]
    error_message = "a group grows to its most, and no further"
  }

  assert {
    condition     = module.autoscaling["default"].idle == "IF((up >= 1) AND (age0 < 1) AND ((run0) < 0.5 * tasks * 100), 1, 0)"
    error_message = "fewer workers only while PostgreSQL answers, nothing waits and half of the slots are free"
  }

  assert {
    condition     = module.autoscaling["mail"].idle == "IF((up >= 1) AND (MAX([age0, age1]) < 1) AND ((run0 + run1) < 0.5 * tasks * 20), 1, 0)"
    error_message = "the oldest job of any of its queues counts"
  }

  assert {
    condition     = alltrue([for group in values(module.autoscaling) : group.missing == ["notBreaching", "notBreaching"]])
    error_message = "silence changes nothing"
  }

  assert {
    condition     = length(setsubtract(concat(flatten([for group in values(module.autoscaling) : group.metrics]), module.alarms.metrics), module.metrics.names)) == 0
    error_message = "what is looked at is made"
  }
}
