import type { CollectedFile, Display, ExecutionResult, RunEvent } from '../executor/index.ts'
import type { Failure } from './failure.ts'

/** A run as one line of JSON (docs/cli.md). */
export function resultLine(id: string | null, result: ExecutionResult): Record<string, unknown> {
  const { ending, sandbox } = result
  return {
    v: 1,
    type: 'result',
    id,
    execution_id: result.executionId,
    status: result.status,
    success: result.success,
    error_kind: result.errorKind,
    has_result: result.hasResult,
    final_data: result.finalData,
    error: result.error,
    traceback: result.traceback,
    warnings: result.warnings,
    intermediates: result.intermediates,
    logs: result.logs,
    stdout: result.stdout,
    stderr: result.stderr,
    stdout_bytes: result.stdoutBytes,
    stderr_bytes: result.stderrBytes,
    output_bytes: result.outputBytes,
    truncated: result.truncated,
    violations: result.violations,
    tool_calls: result.toolCalls,
    ending: { cause: ending.cause, exit_code: ending.exitCode, signal: ending.signal, by: ending.by },
    duration_ms: result.durationMs,
    sandbox: {
      id: sandbox.id,
      engine: sandbox.engine,
      level: sandbox.level,
      python: sandbox.python,
      use: sandbox.use,
      limits_enforced: sandbox.limitsEnforced,
      network: sandbox.network,
    },
    environment: result.environment,
    ignored_frames: result.ignoredFrames,
    limits_hit: result.limitsHit,
    files: result.files.map(fileLine),
    displays: result.displays.map(displayLine),
  }
}

/** A value that the script showed. */
export function displayLine({ kind, data, leftOut, after }: Display): Record<string, unknown> {
  return { kind, data, left_out: leftOut, after }
}

/** A collected file, with its content. */
export function fileLine({ path, size, sha256, content }: CollectedFile): Record<string, unknown> {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  return { path, size, sha256, content_base64: bytes.toString('base64') }
}

/** The answer to a request of a batch that was not run. */
export function refusalLine(id: string | null, line: number | null, failure: Failure): Record<string, unknown> {
  return {
    v: 1,
    type: 'result',
    id,
    ...(line === null ? {} : { line }),
    status: failure.status,
    success: false,
    error_kind: failure.errorKind,
    code: failure.code,
    error: failure.message,
  }
}

/** Fields that only some events have. */
const NO_FIELDS = {
  sandboxId: undefined,
  callId: undefined,
  approvalId: undefined,
  waitedMs: undefined,
  leftOut: undefined,
  resultJson: null,
}

/** An event as one line of JSON; the result has a line of its own. */
export function eventLine(event: Exclude<RunEvent, { type: 'result' }>): Record<string, unknown> {
  const { type, executionId, ...rest } = event
  // A tool's answer may be large, and the journal keeps it.
  const { sandboxId, callId, approvalId, waitedMs, leftOut, resultJson: _, ...others } = { ...NO_FIELDS, ...rest }
  return {
    v: 1,
    type,
    execution_id: executionId,
    ...(sandboxId === undefined ? {} : { sandbox_id: sandboxId }),
    ...(callId === undefined ? {} : { id: callId }),
    ...(approvalId === undefined ? {} : { approval_id: approvalId }),
    ...(waitedMs === undefined ? {} : { waited_ms: waitedMs }),
    ...others,
    ...(leftOut === undefined ? {} : { left_out: leftOut }),
  }
}
