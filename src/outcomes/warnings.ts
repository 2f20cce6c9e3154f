/** The codes of warnings, with their meanings. docs/cli.md lists them. */
export const WARNING_CODES = {
  second_result: '`emit_result` was called again; the first result stands',
  result_after_error: '`emit_result` was called after an error; it is not the result',
  error_after_result: 'an exception or `sys.exit` came after the result',
  second_error: 'another error came after the one that decided the outcome',
  timeout: 'the timeout was reached after the outcome was decided',
  crash: 'the script crashed after the outcome was decided',
  memory_limit: 'the memory limit was reached after the outcome was decided',
  output_limit: 'the output limit was reached after the outcome was decided',
  cancelled: 'the run was cancelled after the outcome was decided',
  lease_released:
    'the lease of the sandbox was released while the run continued; the run was cancelled and the sandbox ended',
  not_started: 'the sandbox was lost after the outcome was decided: the harness started no script and gave no reason',
  channel_closed: 'the sandbox was lost after the outcome was decided: its channel closed',
  channel_violation: 'the sandbox was lost after the outcome was decided: it broke the protocol',
  callback_failed: "a callback of the library's caller threw after the outcome was decided",
  nan_as_null: '`nan` in emitted data became `null`; the message has how many there were, and where',
  secret_too_short: 'a secret has fewer than 4 characters and is not redacted',
  secret_in_file: 'a collected file holds the value of a secret; its content is unchanged',
  displays_left_out: 'the script showed more than a run, or a session, can carry; the message has the limits',
  secret_in_display: 'a part of a display was left out, because redaction cannot hide the value of a secret in it',
  collect_skipped: 'a file could not be collected: it is unreadable or too large, or its name is not UTF-8',
  files_not_kept:
    'the workspace has the files from before the run: what the run wrote was lost with its process (pyodide), or is too large',
  file_incomplete: 'only a part of a file arrived; the file is left out',
  not_saved: '`--save` could not write a file',
  tool_calls_left_out: 'the script called more tools than `tool_calls` lists',
  tool_calls_unanswered: 'tool calls were still open when the run ended; what they had begun is not undone',
  tool_not_loaded: 'a file of `--tools-dir` could not be loaded; scripts lack what it defines',
  pip_install: 'the script called pip, which cannot install anything there; the message says how packages are declared',
  preload_failed: "a module that the library's caller asked to preload could not be loaded",
  session_rolled_back:
    'the process of the session ended between two cells; the session went back to the state after the earlier one, or to an older state that the message describes',
  branch_lacks_state:
    'this is the first cell of a branch, which lacks a part of the state of the session that it comes from; the message names it',
  cpu_limit_lost: 'the CPU limit, lifted to end a run in time, could not be restored; the sandbox was ended',
  destroy_failed: 'a sandbox that had to be destroyed still existed after 2 s',
  harness_warning: 'the harness sent a warning with a code that this version does not know; the message holds both',
} as const

/** One of {@link WARNING_CODES}. */
export type WarningCode = keyof typeof WARNING_CODES

/** True if a text is one of {@link WARNING_CODES}. */
export function isWarningCode(text: string): text is WarningCode {
  return Object.hasOwn(WARNING_CODES, text)
}
