# What is said before anything is made.

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

run "redis_without_a_token" {
  command = plan

  variables {
    redis_auth_token = null
  }

  expect_failures = [var.redis_auth_token]
}

run "a_shutdown_longer_than_fargate_waits" {
  command = plan

  variables {
    shutdown_seconds = 101
  }

  expect_failures = [var.shutdown_seconds]
}

run "an_image_nobody_can_tell" {
  command = plan

  variables {
    image = "registry.example/outlast:latest"
  }

  expect_failures = [var.image]
}

run "a_secret_among_the_settings" {
  command = plan

  variables {
    settings = { OUTLAST_API_TOKEN = "in-plain-sight" }
  }

  expect_failures = [var.settings]
}

run "root" {
  command = plan

  variables {
    container_user = "0:0"
  }

  expect_failures = [var.container_user]
}

run "one_api" {
  command = plan

  variables {
    api = { tasks_min = 1 }
  }

  expect_failures = [var.api]
}

run "one_zone" {
  command = plan

  variables {
    availability_zones = ["eu-central-1a"]
  }

  expect_failures = [var.availability_zones]
}

run "a_group_without_handlers" {
  command = plan

  variables {
    workers = { default = { handlers = [] } }
  }

  expect_failures = [var.workers]
}
