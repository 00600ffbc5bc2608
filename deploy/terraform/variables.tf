variable "name" {
  description = "Of this deployment; begins the names of everything it makes."
  type        = string
  default     = "outlast"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,17}[a-z0-9]$", var.name))
    error_message = "2 to 19 of a-z, 0-9 and -, a letter first, no - at the end: load balancers take 32 characters in all."
  }
}

variable "region" {
  description = "Where it runs."
  type        = string
}

variable "availability_zones" {
  description = "Two or three zones of the region. PostgreSQL's standby and every service are spread over them."
  type        = list(string)

  validation {
    condition     = length(var.availability_zones) >= 2 && length(var.availability_zones) <= 3
    error_message = "Two or three."
  }
}

variable "tags" {
  description = "Of everything."
  type        = map(string)
  default     = {}
}

variable "vpc_cidr" {
  description = "Addresses of the network, a /16."
  type        = string
  default     = "10.20.0.0/16"

  validation {
    condition     = can(cidrhost(var.vpc_cidr, 0)) && endswith(var.vpc_cidr, "/16")
    error_message = "A network such as 10.20.0.0/16."
  }
}

variable "single_nat_gateway" {
  description = "One gateway for all zones: cheaper, and a zone that fails takes the way out of the others with it."
  type        = bool
  default     = false
}

variable "transport" {
  description = "What carries job ids: redis (ElastiCache), sqs, or pg (no broker)."
  type        = string
  default     = "redis"

  validation {
    condition     = contains(["redis", "sqs", "pg"], var.transport)
    error_message = "redis, sqs or pg."
  }
}

variable "image" {
  description = "Of the services: an image whose PATH has `outlast`, by tag or digest."
  type        = string

  validation {
    condition     = can(regex("(:[^:/]+|@sha256:[0-9a-f]{64})$", var.image)) && !endswith(var.image, ":latest")
    error_message = "Must end in a tag or a digest, and not in :latest: nobody could tell which version runs."
  }
}

variable "migrate_image" {
  description = "Of the one-off tasks: the next version, before the services get it. By default the services' image."
  type        = string
  default     = null
}

variable "collector_image" {
  description = "AWS Distro for OpenTelemetry (aws-otel-collector), by tag or digest: takes /metrics to CloudWatch."
  type        = string

  validation {
    condition     = can(regex("(:[^:/]+|@sha256:[0-9a-f]{64})$", var.collector_image)) && !endswith(var.collector_image, ":latest")
    error_message = "Must end in a tag or a digest, and not in :latest."
  }
}

variable "ecr_repository_arns" {
  description = "Private repositories the images come from; none for images that anybody may pull."
  type        = list(string)
  default     = []
}

variable "container_user" {
  description = "Numbers of the user and group of Outlast's processes."
  type        = string
  default     = "10001:10001"

  validation {
    condition     = can(regex("^[1-9][0-9]*:[1-9][0-9]*$", var.container_user))
    error_message = "uid:gid, in numbers, and not root's."
  }
}

variable "cpu_architecture" {
  description = "X86_64 or ARM64, as the images are."
  type        = string
  default     = "X86_64"

  validation {
    condition     = contains(["X86_64", "ARM64"], var.cpu_architecture)
    error_message = "X86_64 or ARM64."
  }
}

variable "certificate_arn" {
  description = "Of the load balancer's TLS certificate, in ACM."
  type        = string
}

variable "public" {
  description = "Whether the load balancer has addresses on the internet."
  type        = bool
  default     = false
}

variable "caller_cidrs" {
  description = "Who may reach the load balancer; by default the network itself."
  type        = list(string)
  default     = null
}

variable "access_logs_bucket" {
  description = "For the load balancer's logs; none by default."
  type        = string
  default     = null
}

variable "api_token" {
  description = "The bearer token of the API. In Secrets Manager only: neither in the state nor in a plan."
  type        = string
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{32,200}$", var.api_token)) && can(regex("[A-Za-z]", var.api_token))
    error_message = "32 to 200 of A-Z, a-z, 0-9, - and _, with a letter among them."
  }
}

variable "api_token_version" {
  description = "Count up to make another api_token take effect."
  type        = number
  default     = 1
}

variable "database_password" {
  description = "PostgreSQL's. In Secrets Manager and RDS only: neither in the state nor in a plan."
  type        = string
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = can(regex("^[A-Za-z0-9_~!*-]{24,100}$", var.database_password))
    error_message = "24 to 100 of A-Z, a-z, 0-9 and _ ~ ! * -."
  }
}

variable "database_password_version" {
  description = "Count up to make another database_password take effect."
  type        = number
  default     = 1
}

variable "database_instance_class" {
  type    = string
  default = "db.m7g.large"
}

variable "database_engine_version" {
  description = "Major version of PostgreSQL, 14 or newer; RDS picks the minor one."
  type        = string
  default     = "17"

  validation {
    condition     = can(regex("^(1[4-9]|[2-9][0-9])$", var.database_engine_version))
    error_message = "A major version, 14 or newer."
  }
}

variable "database_storage_gb" {
  description = "At first; grows by itself up to ten times as much."
  type        = number
  default     = 100
}

variable "database_backup_days" {
  type    = number
  default = 14

  validation {
    condition     = var.database_backup_days >= 1 && var.database_backup_days <= 35
    error_message = "1 to 35: without backups there is no way back."
  }
}

variable "database_ca_file" {
  description = "Path, inside the image, of RDS' certificate bundle. Without it connections are encrypted, but who answers is not checked."
  type        = string
  default     = null
}

variable "redis_auth_token" {
  description = "ElastiCache's, for transport redis. ElastiCache takes no write-only arguments: this one is in the state."
  type        = string
  default     = null
  sensitive   = true

  validation {
    condition     = var.redis_auth_token == null || can(regex("^[A-Za-z0-9]{32,128}$", var.redis_auth_token))
    error_message = "32 to 128 of A-Z, a-z and 0-9."
  }

  validation {
    condition     = var.transport != "redis" || var.redis_auth_token != null
    error_message = "transport redis needs one."
  }
}

variable "redis_auth_token_version" {
  description = "Count up to make another redis_auth_token take effect."
  type        = number
  default     = 1
}

variable "cache_node_type" {
  type    = string
  default = "cache.t4g.small"
}

variable "sqs_prefix" {
  description = "Of the SQS queues' names; by default the deployment's name and a dash."
  type        = string
  default     = null

  validation {
    condition     = var.sqs_prefix == null || can(regex("^[A-Za-z0-9_-]{1,30}$", var.sqs_prefix))
    error_message = "1 to 30 of A-Z, a-z, 0-9, - and _, as OUTLAST_SQS_PREFIX."
  }
}

variable "lease_seconds" {
  description = "OUTLAST_LEASE_SECONDS, and how long SQS hides a message by itself."
  type        = number
  default     = 15
}

variable "shutdown_seconds" {
  description = "OUTLAST_SHUTDOWN_SECONDS: what running jobs get when a task is stopped. Fargate waits 120 s at most."
  type        = number
  default     = 60

  validation {
    condition     = var.shutdown_seconds >= 0 && var.shutdown_seconds <= 100
    error_message = "0 to 100: a worker needs up to 20 s more to give back what did not end, and Fargate kills after 120."
  }
}

variable "settings" {
  description = "More OUTLAST_* settings, for every process; what is a secret has variables of its own."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key in keys(var.settings) : can(regex("^OUTLAST_[A-Z_]+$", key))])
    error_message = "Names must be OUTLAST_*."
  }

  validation {
    condition = length(setintersection(keys(var.settings), [
      "OUTLAST_DATABASE_URL", "OUTLAST_REDIS_URL", "OUTLAST_API_TOKEN", "OUTLAST_ALLOW_ANONYMOUS", "OUTLAST_FAILPOINTS",
      "OUTLAST_TRANSPORT", "OUTLAST_SQS_PREFIX", "OUTLAST_LEASE_SECONDS", "OUTLAST_SHUTDOWN_SECONDS",
    ])) == 0
    error_message = "Secrets are not settings here, and what else is named OUTLAST_* in other variables is said there."
  }
}

variable "api" {
  description = "Size and number of the API's tasks; the number follows their processor time."
  type = object({
    cpu       = optional(number, 1024)
    memory    = optional(number, 2048)
    tasks_min = optional(number, 2)
    tasks_max = optional(number, 10)
  })
  default = {}

  validation {
    condition     = var.api.tasks_min >= 2 && var.api.tasks_max >= var.api.tasks_min
    error_message = "At least two, so that one may go."
  }
}

variable "relay" {
  description = "Size of the relay's tasks. There are two: one leads, one stands by."
  type = object({
    cpu    = optional(number, 512)
    memory = optional(number, 1024)
  })
  default = {}
}

variable "workers" {
  description = <<-TEXT
    Groups of workers. `handlers` are modules in the image; a group serves its `queues`, with `processes` children of
    `concurrency` jobs each a task. A group grows while its oldest job waits longer than `wait_seconds`.
  TEXT
  type = map(object({
    handlers     = list(string)
    queues       = optional(list(string), ["default"])
    processes    = optional(number, 1)
    concurrency  = optional(number, 100)
    cpu          = optional(number, 1024)
    memory       = optional(number, 2048)
    tasks_min    = optional(number, 2)
    tasks_max    = optional(number, 20)
    wait_seconds = optional(number, 30)
  }))

  validation {
    condition     = length(var.workers) > 0 && alltrue([for name in keys(var.workers) : can(regex("^[a-z][a-z0-9-]{0,19}$", name))])
    error_message = "At least one group; names are 1 to 20 of a-z, 0-9 and -, a letter first."
  }

  validation {
    condition     = alltrue([for group in values(var.workers) : length(group.handlers) > 0 && length(group.queues) > 0])
    error_message = "A group needs handlers and queues."
  }

  validation {
    condition = alltrue(flatten([
      for group in values(var.workers) : [for queue in group.queues : can(regex("^[a-z0-9][a-z0-9._-]{0,99}$", queue))]
    ]))
    error_message = "Queues are called [a-z0-9][a-z0-9._-]{0,99}."
  }

  validation {
    condition     = alltrue([for group in values(var.workers) : group.tasks_min >= 1 && group.tasks_max >= group.tasks_min])
    error_message = "tasks_max must not be less than tasks_min, nor that less than 1."
  }

  validation {
    condition     = alltrue([for group in values(var.workers) : length(group.queues) <= 4])
    error_message = "Four queues a group at most: an alarm takes ten metrics."
  }
}

variable "worker_egress_ports" {
  description = "Where handlers call out to, besides 443."
  type        = set(number)
  default     = []
}

variable "worker_scratch_path" {
  description = "Where handlers may write files, such as /tmp: a VOLUME of the image that belongs to its user. Nowhere by default."
  type        = string
  default     = null
}

variable "alarm_emails" {
  description = "Who is told. AWS asks each for a confirmation."
  type        = set(string)
  default     = []
}

variable "dead_letters_max" {
  description = "Dead letters of one reason that nobody needs to look at."
  type        = number
  default     = 0
}

variable "log_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}
