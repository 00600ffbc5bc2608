# The module that the transport's test applies.

mock_provider "aws" {
  source = "./tests/aws"
}

run "queues" {
  module {
    source = "./modules/queue"
  }

  variables {
    prefix = "some-"
    queues = ["default", "mail.urgent", "a-name-of-a-hundred-characters.which-is-longer-than-sqs-takes.so-the-end-of-it-is-told-by-a-hash.x"]
  }

  assert {
    condition     = toset(keys(output.dead_names)) == toset(keys(output.names))
    error_message = "every queue has its dead-letter queue"
  }

  assert {
    condition = alltrue([
      for queue in output.redrive :
      jsondecode(queue.policy).maxReceiveCount >= 100 && jsondecode(queue.policy).deadLetterTargetArn == queue.dead
    ])
    error_message = "and gives messages up late enough for the application, to that one"
  }

  assert {
    condition     = length(output.policies) == 6 && alltrue([for policy in output.policies : strcontains(policy, "\"Deny\"") && strcontains(policy, "aws:SecureTransport")])
    error_message = "nothing is sent or read unencrypted, dead letters neither"
  }

  assert {
    condition     = alltrue([for name in concat(values(output.names), values(output.dead_names)) : length(name) <= 80])
    error_message = "SQS takes 80 characters"
  }

  assert {
    condition     = alltrue([for name in values(output.dead_names) : !startswith(name, "some-")])
    error_message = "the application does not take a dead-letter queue for one of its own"
  }
}

run "too_few_deliveries" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    prefix            = "some-"
    queues            = ["default"]
    max_receive_count = 99
  }

  expect_failures = [var.max_receive_count]
}

run "a_prefix_of_dead_letters" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    prefix = "dlq-"
    queues = ["default"]
  }

  expect_failures = [var.prefix]
}
