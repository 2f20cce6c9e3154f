import { z } from 'zod'
import type { CheckpointState, SessionVariable } from '../executor/index.ts'
import { CAPS } from '../protocol/index.ts'

/** The answer to a restore. */
export interface Restored {
  readonly ended: readonly string[]
  readonly missing: readonly string[]
  readonly checkpoint: CheckpointState
}

const text: z.ZodType<string> = z.string().max(CAPS.errorMessage)
const texts: z.ZodType<string[]> = z.array(text).max(CAPS.missingItems)

/** The content of a checkpoint. */
export const checkpointAnswer: z.ZodType<CheckpointState> = z.object({
  grade: z.enum(['whole', 'partial', 'none']),
  lacks: texts,
})
export const restoredAnswer: z.ZodType<Restored> = z.object({
  ended: texts,
  missing: texts,
  checkpoint: checkpointAnswer,
})
export const namesAnswer: z.ZodType<string[]> = z.array(text)
export const variablesAnswer: z.ZodType<SessionVariable[]> = z.array(
  z.object({
    name: text,
    type: text,
    shape: z.array(z.number()).nullable(),
    bytes: z.number().nonnegative().nullable(),
  }),
)
