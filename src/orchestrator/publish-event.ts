import type { JournalEvent } from '../journal/index.ts'
import { publish } from '../telemetry/index.ts'

/**
 * Publishes the events that belong in logs: no scripts, prompts, results or output.
 * `error` can contain data, such as the message of an exception; it is redacted.
 */
export function publishEvent(event: JournalEvent, traceId: string | null): void {
  const base = { trace_id: traceId, run_id: event.run_id }
  switch (event.type) {
    case 'script_generated': {
      const { step, attempt, model, prompt_tokens, completion_tokens, cost = null, latency_ms, script } = event
      const ok = script !== null
      publish('scriptGenerated', () => ({
        event: 'script_generated',
        ...base,
        step,
        attempt,
        ok,
        model,
        prompt_tokens,
        completion_tokens,
        cost,
        latency_ms,
      }))
      return
    }
    case 'script_executed': {
      const { step, attempt, status, error_kind, error, duration_ms, tool_calls, sandbox } = event
      publish('scriptExecuted', () => ({
        event: 'script_executed',
        ...base,
        step,
        attempt,
        ok: error_kind === null,
        status,
        error_kind,
        error,
        duration_ms,
        tool_calls,
        sandbox_id: sandbox.id,
        engine: sandbox.engine,
        level: sandbox.level,
      }))
      return
    }
    case 'run_ended': {
      const { status, error, duration_ms, prompt_tokens, completion_tokens, cost = null, tool_calls } = event
      publish('runEnded', () => ({
        event: 'run_ended',
        ...base,
        ok: status === 'completed',
        status,
        error,
        duration_ms,
        prompt_tokens,
        completion_tokens,
        cost,
        tool_calls,
      }))
      return
    }
    default:
  }
}
