"""Lists the claims: the key, the name and the module in `bench/claims` of each."""

import ast
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure

Prove = Callable[[bool], Awaitable[Figure]]

NAMES: Final[Mapping[str, str]] = {
    "core-1": "official_sdk_quickstart",
    "core-2": "kill_any_process",
    "core-3": "stale_worker_is_fenced",
    "core-4": "streams_survive_cuts",
    "core-5": "workflow_history_stays_small",
    "core-6": "long_conversation_cost",
    "core-7": "full_database_stays_fast",
    "core-8": "overhead_against_bare_engine",
    "core-9": "organisations_are_isolated",
    "core-10": "structure_and_docs",
    "door-1": "python_sdk_every_method",
    "door-2": "typescript_sdk",
    "door-3": "kill_api_during_post",
    "door-4": "same_agent_on_every_wire_format",
    "door-5": "command_line_screens_and_pipes",
    "door-6": "api_matches_openapi",
    "door-7": "traces_and_metrics",
    "door-8": "quickstart_in_two_minutes",
    "door-9": "api_overhead_and_idle_streams",
    "box-1": "escape_attempts_fail",
    "box-2": "no_orphan_processes",
    "box-3": "provider_key_never_leaks",
    "box-4": "sandbox_network_limits",
    "box-5": "interrupts_stop_tools",
    "box-6": "crash_suite_in_sandboxes",
    "box-7": "large_tool_output",
    "box-8": "sandbox_overhead",
    "box-9": "every_backend_in_ci",
    "box-10": "security_page_is_tested",
    "claude-1": "sdk_messages_become_events",
    "claude-2": "kill_claude_code",
    "claude-3": "session_moves_between_hosts",
    "claude-4": "concurrent_messages",
    "claude-5": "fork_at_any_event",
    "claude-6": "interrupt_within_a_second",
    "claude-7": "warm_start_latency",
    "claude-8": "worker_memory_stays_flat",
    "claude-9": "rolling_worker_restarts",
    "claude-10": "large_output_and_provider_errors",
    "claude-11": "transcript_import_and_export",
    "claude-12": "untrusted_repository_settings",
    "trees-1": "diffs_and_restores_are_exact",
    "trees-2": "user_repository_is_untouched",
    "trees-3": "host_lost_during_turns",
    "trees-4": "fork_restores_files",
    "trees-5": "parallel_merges",
    "trees-6": "hostile_git_workspaces",
    "trees-7": "snapshot_cost_against_git",
    "trees-8": "storage_grows_with_changes",
    "trees-9": "deletion_and_garbage_collection",
    "gate-1": "rule_bypass_attempts",
    "gate-2": "random_commands_and_rules",
    "gate-3": "kill_during_approval",
    "gate-4": "approval_after_ten_days",
    "gate-5": "cost_of_a_waiting_session",
    "gate-6": "subagents_and_forks_are_gated",
    "gate-7": "faulty_hooks_deny",
    "gate-8": "existing_claude_settings",
    "gate-9": "audit_trail_tampering",
    "gate-10": "both_harnesses_are_gated",
    "guard-1": "fixed_attacks_stay_fixed",
    "guard-2": "hostile_patterns",
    "guard-3": "exhaustion_attacks",
    "guard-4": "display_spoofing",
    "guard-5": "roles_cannot_weaken_rules",
    "guard-6": "dev_server_attacks",
    "fast-1": "tool_call_overhead",
    "fast-2": "one_turn_session_rate",
    "fast-3": "first_token_latency",
    "fast-4": "turn_cost_at_any_length",
    "fast-5": "first_turn_after_start",
    "fast-6": "counts_per_turn",
    "fast-7": "usage_and_archiving_at_scale",
    "fast-8": "comparison_with_peers",
    "ready-2": "temporal_state_lost",
    "ready-3": "roles_match_the_published_table",
    "ready-4": "hidden_sessions_do_not_exist",
    "ready-5": "noisy_organisation_is_limited",
    "ready-6": "long_session_restores_from_few_objects",
    "ready-7": "disabled_member_hands_over",
    "steps-2": "queue_follows_its_model",
    "steps-3": "feed_survives_cuts_and_idle_sessions",
    "steps-4": "questions_are_answered_once",
    "steps-5": "children_are_accounted_for",
    "steps-6": "outputs_survive_kills",
    "steps-7": "background_jobs_are_fair",
    "steps-8": "references_never_become_commands",
    "triggers-1": "webhooks_arrive_despite_kills",
    "triggers-2": "schedules_fire_once",
    "triggers-3": "deliveries_act_once",
    "triggers-4": "terminals_of_people",
    "triggers-5": "bypass_attempts_in_manual_mode",
    "triggers-7": "rolling_restart_under_load",
    "seeds-1": "requirements_are_tested",
    "seeds-2": "same_agent_on_every_provider",
    "seeds-3": "backend_per_session",
    "seeds-4": "state_moves_between_hosts",
    "seeds-5": "server_tools_run_at_most_once",
    "seeds-6": "cached_setups_start_faster",
    "seeds-7": "usage_reports_match_the_log",
    "seeds-8": "client_resolves_on_other_systems",
    "dash-1": "every_action_in_a_browser",
    "dash-3": "dashboard_stays_fast",
    "dash-4": "pages_are_accessible",
    "dash-5": "hostile_content_stays_text",
    "dash-6": "sign_in_attacks",
    "dash-7": "notifications_reach_browsers",
    "deploy-2": "pooler_in_transaction_mode",
    "deploy-7": "install_sizes",
    "deploy-9": "composition_and_named_parameters",
    "plain-1": "names_and_structure",
    "plain-4": "outdated_evidence_is_marked",
    "ci-1": "ci_duration",
    "ci-2": "timing_tests_under_load",
    "ci-3": "mutations_are_caught",
    "ci-4": "unit_tests_start_no_process",
}
"""The module of each claim, by its key. `just prove` takes either, with hyphens: `core-2` or `kill-any-process`."""
CLAIMS: Final = Path(__file__).resolve().parents[1] / "claims"


@dataclass(frozen=True, slots=True)
class Claim:
    key: str

    @property
    def group(self) -> str:
        return self.key.partition("-")[0]

    @property
    def name(self) -> str:
        return NAMES[self.key].replace("_", "-")

    @property
    def path(self) -> Path:
        return CLAIMS / self.group / f"{NAMES[self.key]}.py"

    @property
    def title(self) -> str:
        """The claim in one sentence: the first line of its module's docstring."""
        return (ast.get_docstring(ast.parse(self.path.read_text())) or "").partition("\n")[0]

    def load(self) -> Prove:
        prove: Prove = importlib.import_module(f"bench.claims.{self.group}.{NAMES[self.key]}").prove
        return prove


def claims() -> Sequence[Claim]:
    return [Claim(key) for key in NAMES]


def select(wanted: str) -> Sequence[Claim]:
    """Returns the claims for a key, a name, a group or `all`; empty if there is none."""
    return [claim for claim in claims() if wanted in {"all", claim.group, claim.key, claim.name}]
