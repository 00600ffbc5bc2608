terraform {
  # Write-only arguments keep secrets out of the state; 1.11.4 is the first whose mocked providers know them.
  required_version = ">= 1.11.4"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region = var.region

  default_tags {
    tags = merge({ Project = "outlast", Deployment = var.name }, var.tags)
  }
}
