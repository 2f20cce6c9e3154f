import type { ExecutionResult } from './executor/index.ts'
import { statusFields } from './outcomes/index.ts'
import { boundedValidator, joinProblems, type SchemaIssue, type StandardToolSchema } from './tools/index.ts'

/** The part of the Standard Schema specification (standardschema.dev, version 1) that is used here. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
  }
}

type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

/** Returns the result with the data that the schema produces; one that does not match is `failed`, and its error says where. */
export async function applySchema<T>(
  result: ExecutionResult,
  schema: StandardSchema<T> | undefined,
): Promise<ExecutionResult<T>> {
  if (schema === undefined || !result.hasResult || !result.success) return result as ExecutionResult<T>
  // One requester per result, so that several runs take turns at the judge.
  const checked = await boundedValidator(schema as StandardToolSchema<T>)(result.finalData, { isOver: false })
  if (checked.issues === undefined) return { ...result, finalData: checked.value as T }
  const [first] = checked.issues
  const error =
    first?.isUnchecked === true
      ? `the result ${first.message}`
      : `the result does not match \`output\`: ${joinProblems(checked.issues, problemText)}`
  return {
    ...result,
    ...statusFields('failed'),
    success: false,
    finalData: null,
    error,
  }
}

function problemText({ path = [], message }: SchemaIssue): string {
  return `${['result', ...path.map(segmentName)].join('.')}: ${message}`
}

function segmentName(segment: unknown): string {
  return typeof segment === 'object' && segment !== null && 'key' in segment ? String(segment.key) : String(segment)
}
