#!/bin/sh
# Formatting, validate, tests with a mocked provider, and a plan for each transport. Touches nothing at AWS and leaves
# nothing here: everything happens in a copy.
#
# The AWS provider comes from TF_PLUGIN_DIR (a folder as `terraform providers mirror` makes it), else from where
# Terraform itself looks. Without Terraform or the provider this says so and ends with 0.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT INT TERM

export TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1
export TF_REGISTRY_DISCOVERY_RETRY=0 TF_REGISTRY_CLIENT_TIMEOUT=10
unset TF_PLUGIN_CACHE_DIR

skip() {
    printf '\n  SKIPPED: %s\n\n' "$1" >&2
    exit 0
}

say() {
    printf '%s\n' "-- $1"
}

command -v terraform >/dev/null || skip "terraform is not on the PATH; nothing of deploy/terraform was checked"

say "fmt"
terraform fmt -check -recursive -diff "$here"

say "the AWS provider"
mkdir "$room/probe"
cp "$here/versions.tf" "$room/probe/"
printf 'variable "name" {}\nvariable "region" {}\nvariable "tags" {}\n' >"$room/probe/variables.tf"
if ! timeout 300 terraform -chdir="$room/probe" init -backend=false -no-color ${TF_PLUGIN_DIR:+-plugin-dir="$TF_PLUGIN_DIR"} \
    >"$room/probe.log" 2>&1; then
    tail -n 12 "$room/probe.log" >&2
    skip "no AWS provider to be had (set TF_PLUGIN_DIR); deploy/terraform was only checked for its formatting"
fi

cp -R "$here" "$room/stack"
rm -rf "$room/stack/.terraform" "$room/stack/.terraform.lock.hcl" "$room"/stack/*.tfstate* "$room"/stack/*.tfvars "$room"/stack/backend.tf
cd "$room/stack"

say "validate"
timeout 120 terraform init -backend=false -no-color -plugin-dir="$room/probe/.terraform/providers" >"$room/init.log" 2>&1 || {
    cat "$room/init.log" >&2
    exit 1
}
timeout 120 terraform validate -no-color

say "test"
timeout 600 terraform test -no-color

# A plan asks AWS for nothing here, so nobody has to be who these credentials say.
cat >offline_override.tf <<'OVERRIDE'
provider "aws" {
  access_key                  = "nobody"
  secret_key                  = "nobody"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  skip_requesting_account_id  = true
}
OVERRIDE
cat >offline.auto.tfvars <<'VALUES'
region             = "eu-central-1"
availability_zones = ["eu-central-1a", "eu-central-1b"]
image              = "registry.example/outlast:1.0.0"
collector_image    = "registry.example/collector:1.0.0"
certificate_arn    = "arn:aws:acm:eu-central-1:111122223333:certificate/00000000-0000-0000-0000-000000000000"
redis_auth_token   = "redisTokenOfAPlanThatNobodyMakes"
workers            = { default = { handlers = ["some.handlers"], queues = ["default", "mail.urgent"] } }
VALUES
export TF_VAR_api_token="api-token-of-a-plan-that-nobody-makes"
export TF_VAR_database_password="password-of-a-plan-that-nobody-makes"

for transport in redis sqs pg; do
    say "plan, transport $transport"
    timeout 180 terraform plan -no-color -lock=false -out=offline.plan -var "transport=$transport" >"$room/plan.log" 2>&1 || {
        cat "$room/plan.log" >&2
        exit 1
    }
    grep '^Plan:' "$room/plan.log"
    terraform show -json offline.plan >"$room/plan.json"
    if grep -q 'of-a-plan-that-nobody-makes' "$room/plan.json"; then
        printf 'a secret stands in the plan\n' >&2
        exit 1
    fi
done
