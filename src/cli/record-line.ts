import type { AttemptRecord, RunRecord, SandboxRecord } from '../journal/index.ts'

/** A record as one line of JSON (docs/cli.md): its keys in snake_case, all data as it is. */
export function recordLine(record: RunRecord, missing: number): Record<string, unknown> {
  return {
    v: 1,
    type: 'run_record',
    run_id: record.runId,
    trace_id: record.traceId,
    task: record.task,
    mode: record.mode,
    sandbox_name: record.sandboxName,
    policy: record.policy,
    tools: record.tools,
    max_retries: record.maxRetries,
    max_steps: record.maxSteps,
    budget: {
      tokens: record.budget.tokens,
      tool_calls: record.budget.toolCalls,
      wall_ms: record.budget.wallMs,
      cost: record.budget.cost,
    },
    status: record.status,
    success: record.success,
    error: record.error,
    final_data: record.finalData,
    partial: record.partial,
    attempts: record.attempts.map(attemptOf),
    steps: record.steps.map(({ number, forceFinish, ok, error, attempts }) => ({
      number,
      force_finish: forceFinish,
      ok,
      error,
      attempts: attempts.map(attemptOf),
    })),
    models: record.models,
    prompt_tokens: record.totalPromptTokens,
    completion_tokens: record.totalCompletionTokens,
    cost: record.cost,
    tool_calls: record.totalToolCalls,
    started_at: record.startedAt,
    duration_ms: record.durationMs,
    missing_events: missing,
  }
}

function attemptOf(attempt: AttemptRecord): Record<string, unknown> {
  const { generation } = attempt
  return {
    number: attempt.number,
    status: attempt.status,
    error: attempt.error,
    traceback: attempt.traceback,
    prompt: attempt.prompt,
    generation:
      generation === null
        ? null
        : {
            model: generation.model,
            prompt_tokens: generation.promptTokens,
            cached_prompt_tokens: generation.cachedPromptTokens,
            completion_tokens: generation.completionTokens,
            latency_ms: generation.latencyMs,
            answer: generation.answer,
          },
    cost: attempt.cost,
    script: attempt.script,
    reviews: attempt.reviews.map(reviewOf),
    violations: attempt.violations,
    has_result: attempt.hasResult,
    final_data: attempt.finalData,
    intermediates: attempt.intermediates,
    logs: attempt.logs,
    displays: attempt.displays.map(({ data, leftOut }) => ({ data, left_out: leftOut })),
    tool_calls: attempt.toolCalls.map(callOf),
    stdout: attempt.stdout,
    stderr: attempt.stderr,
    warnings: attempt.warnings,
    files: attempt.files,
    sandbox: attempt.sandbox === null ? null : sandboxOf(attempt.sandbox),
    execution_ms: attempt.executionMs,
    duration_ms: attempt.durationMs,
    repetition: attempt.repetition,
    rerun: attempt.rerun,
  }
}

function callOf({ resultJson, approval, ...call }: AttemptRecord['toolCalls'][number]): Record<string, unknown> {
  const shown = { ...call, result_json: resultJson }
  if (approval === undefined) return shown
  const { decidedAt, waitedMs, ...decision } = approval
  return { ...shown, approval: { ...decision, decided_at: decidedAt, waited_ms: waitedMs } }
}

function reviewOf(review: AttemptRecord['reviews'][number]): Record<string, unknown> {
  const { decision, sandbox } = review
  return {
    proposal_id: review.proposalId,
    plan: review.plan,
    script: review.script,
    sha256: review.sha256,
    dependencies: review.dependencies,
    tools: review.tools,
    sandbox: {
      engine: sandbox.engine,
      level: sandbox.level,
      python: sandbox.python,
      limits_enforced: sandbox.limitsEnforced,
      network: sandbox.network,
    },
    problem: review.problem,
    proposed_at: review.proposedAt,
    decision:
      decision === null
        ? null
        : {
            decision: decision.decision,
            by: decision.by,
            text: decision.text,
            script: decision.script,
            decided_at: decision.decidedAt,
            waited_ms: decision.waitedMs,
          },
  }
}

function sandboxOf({ limitsEnforced, ...sandbox }: SandboxRecord): Record<string, unknown> {
  return { ...sandbox, limits_enforced: limitsEnforced }
}
