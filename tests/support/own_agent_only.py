"""What the A2A contract suites ask of our own agents alone, and why a hosted ACP agent does not serve it.

The other tests of these suites run with an ACP agent too: a sample in every run, all of them in make contract-acp.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

OWN_AGENT_ONLY: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "no agent is behind the server, or there is no server: these are about our client, sockets or recordings": (
            "test_a2a_client_transcripts",
            "test_a2a_hostile_servers",
            "test_a2a_owner_here",
            "test_a2a_unavailable",
            "test_a2a_remote_agent_errors",
            "test_a2a_access::test_a_servers_end_closes_idle_connections_and_cuts_off_what_exceeds_grace",
            "test_a2a_access::test_an_address_that_cannot_be_had_is_named",
            "test_a2a_access::test_any_free_port_is_told_by_the_url",
            "test_a2a_lost_answers::test_a_message_that_cannot_have_left_is_sent_again_to_every_server",
            "test_a2a_lost_answers::test_a_server_that_may_work_twice_gets_no_message_again_that_it_may_have",
            "test_a2a_lost_answers::test_sending_again_is_bounded_in_number_and_in_time",
            "test_a2a_remote_agent::test_a_card_over_plain_http_may_lead_to_a_server_with_tls",
            "test_a2a_transcripts::test_both_versions_tell_the_same",
            "test_a2a_transcripts::test_each_transcript_shows_its_kind_of_question",
            "test_a2a_transcripts::test_the_client_reads_what_is_written",
        ),
        "the server is a program, or an application in another one, that has an agent of its own": (
            "test_a2a_mounted",
            "test_a2a_hosted::test_an_agent_on_the_folder_of_another_one_is_refused_and_a_renamed_one_is_not",
            "test_a2a_streams::test_a_signal_ends_streams_and_the_process_properly",
        ),
        "our own slash commands, instructions and models: an ACP agent has its own (tests/contract/test_acp_hosting)": (
            "test_a2a_command_methods",
            "test_a2a_commands",
            "test_a2a_commands_without_folder",
            "test_a2a_own_files",
            "test_a2a_careless_requests::test_later_settings_may_name_single_fields_and_are_held_to_their_types",
            "test_a2a_event_metadata::test_events_tell_the_model_that_was_used_the_tier_and_the_error",
            "test_a2a_remote_commands::test_a_command_runs_as_a_task_whose_events_come_from_the_first",
            "test_a2a_remote_commands::test_the_commands_of_the_server_are_a_tree",
            "test_a2a_remote_commands::test_what_a_command_asks_is_answered_like_any_question",
        ),
        "the test compares the server with the tasks, the followers or single events of the agent in memory": (
            "test_a2a_plain_clients::test_a_prompt_works_in_the_workspace_of_the_server",
            "test_a2a_plain_clients::test_the_stream_has_states_and_the_answer_and_nothing_of_the_extension",
            "test_a2a_refusals::test_a_bug_is_an_internal_error_without_internals",
            "test_a2a_remote_agent::test_a_broken_stream_is_taken_up_again_without_loss_or_repetition",
            "test_a2a_remote_agent::test_a_snapshot_is_as_the_agent_itself_has_it",
            "test_a2a_remote_agent::test_a_turn_is_as_the_agent_itself_has_it",
            "test_a2a_remote_agent::test_every_event_that_is_sent_comes_back_as_it_was",
            "test_a2a_streams::test_a_sender_that_leaves_does_not_stop_the_task",
            "test_a2a_streams::test_an_error_inside_a_stream_is_its_last_event",
            "test_a2a_streams::test_stopping_the_server_ends_open_streams_properly",
            "test_a2a_task_lists::test_a_client_reads_as_many_pages_as_it_needs",
        ),
        "ACP has no artifacts (but for images), no refused tasks, and no answer that is a message instead of a task": (
            "test_a2a_hosted::test_a_question_is_answered_and_whole_numbers_stay_whole",
            "test_a2a_hosted_content::test_an_agent_may_reject_a_task_or_want_a_login",
            "test_a2a_hosted_content::test_an_answer_that_is_all_there_is_to_say_comes_as_a_message",
            "test_a2a_slow_readers::test_artifacts_stream_and_stand_in_the_task",
            "test_a2a_v03_rest::test_a_message_a_question_its_answer_and_the_task_have_the_form_of_the_proto",
            "test_a2a_v03_rest::test_a_stream_and_its_resumption_have_the_items_of_the_proto",
            "test_a2a_v1::test_artifacts_are_updates_of_their_own",
            "test_a2a_v1_clauses::test_a_task_is_found_with_as_much_as_is_asked_for",
            "test_a2a_v1_clauses::test_ids_of_tasks_are_new_and_contexts_are_made_kept_or_found",
            "test_a2a_v1_clauses::test_parts_and_artifacts_have_what_they_must_and_enums_their_names",
        ),
        "the tokens that an ACP agent uses are not known": (
            "test_a2a_quotas::test_a_new_token_does_not_give_a_user_new_model_tokens",
            "test_a2a_quotas::test_a_user_whose_day_has_cost_its_maximum_is_told_so",
            "test_a2a_quotas::test_a_user_without_tokens_left_is_told_so_and_loses_nothing",
        ),
        "ACP has no questions in text: an agent asks about a call, whose data has names of its own": (
            "test_a2a_hosted::test_a_plain_client_of_1_0_answers_in_words",
            "test_a2a_v1_clauses::test_names_are_in_camel_case_and_times_in_utc",
            "test_a2a_v1_clauses::test_tasks_statuses_and_messages_have_what_they_must",
        ),
        "ACP has questions with options alone, which have a kind and no description; a call has a title": (
            "test_a2a_appendix_a::test_every_kind_of_question_goes_out_whole",
            "test_a2a_plain_clients::test_a_question_about_an_mcp_tool_has_its_arguments_and_the_servers_hints",
            "test_a2a_plain_clients::test_a_question_is_described_in_text_and_whole_as_data",
            "test_a2a_plain_clients::test_every_kind_of_question_is_described",
        ),
        "ACP has no kinds and codes of a call's error, no cancelled calls, and no notices of another attempt": (
            "test_a2a_appendix_a::test_a_call_that_fails_has_its_error",
            "test_a2a_appendix_a::test_a_retry_is_a_state_change_that_says_why",
            "test_a2a_remote_agent::test_why_a_task_failed_comes_along",
            "test_coder_agent_requests::test_a_failed_call_has_the_members_of_the_real_one",
            "test_coder_agent_requests::test_live_output_is_an_artifact_whose_text_is_whole_each_time",
            "test_coder_agent_requests::test_what_the_dialect_has_no_kind_for_is_told_in_the_nearest",
        ),
        "the host gives texts ids of its own, joins thoughts, and limits the output of a call to 1 MiB": (
            "test_a2a_appendix_a::test_text_comes_as_increments_of_one_message",
            "test_a2a_remote_agent::test_a_large_file_goes_through_whole",
            "test_a2a_slow_readers::test_a_reader_that_sleeps_loses_nothing_but_outdated_progress",
        ),
        "an ACP agent gets a message as text, images and links, without its ids, metadata and settings": (
            "test_a2a_appendix_a::test_the_first_message_carries_the_workspace_to_the_agent",
            "test_a2a_hosted_content::test_an_image_alone_is_a_message_in_0_3_too",
            "test_a2a_hosted_content::test_our_client_sends_images_and_metadata_and_finds_the_image_that_came_of_it",
            "test_a2a_hosted_content::test_parts_files_data_and_metadata_of_a_message_reach_the_agent",
            "test_a2a_plain_clients::test_data_and_files_become_part_of_the_prompt",
        ),
        "an ACP agent is told of a missing login by the host's words, with its ways to log in": (
            "test_a2a_v1_clauses::test_a_login_that_is_wanted_is_a_state_of_the_task_with_a_text",
        ),
        "nothing is sent to an ACP agent twice: work and questions of an ended server fail, and their texts stay": (
            "test_a2a_push::test_a_url_that_no_longer_may_be_called_is_not",
            "test_a2a_torn_texts",
        ),
    }
)
"""Files and tests, by the reason for which they do not run with an ACP agent."""

SAMPLE: Sequence[str] = (
    "test_a2a_queue",
    "test_a2a_repeated_messages",
    "test_a2a_streams",
    "test_a2a_waiting_tasks",
)
"""Files that every run of the tests repeats with an ACP agent: queues, repetitions, streams and waiting tasks."""
