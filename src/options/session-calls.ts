import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import type { SessionCheckpoint } from './session.ts'

const MAX_BRANCHES = 16

/** @throws SandglassError `invalid_request` */
export function checkBranchCount(count: unknown): void {
  if (Number.isInteger(count) && (count as number) >= 1 && (count as number) <= MAX_BRANCHES) return
  const range = `a whole number from 1 to ${MAX_BRANCHES}`
  throw new SandglassError('invalid_request', `count: ${formatValue(count)} is not ${range}`)
}

/** Returns the place at which code is completed. @throws SandglassError `invalid_request` */
export function checkCursor(code: unknown, cursor: unknown): number {
  if (typeof code !== 'string')
    throw new SandglassError('invalid_request', `code: ${formatValue(code)} is not a string`)
  if (cursor === undefined) return code.length
  if (Number.isInteger(cursor) && (cursor as number) >= 0 && (cursor as number) <= code.length) return cursor as number
  const range = `a whole number from 0 to ${code.length}`
  throw new SandglassError('invalid_request', `cursor: ${formatValue(cursor)} is not ${range}`)
}

/** @throws SandglassError `invalid_request` */
export function checkCheckpointName(name: unknown): void {
  if (name !== undefined && typeof name !== 'string')
    throw new SandglassError('invalid_request', `name: ${formatValue(name)} is not a string`)
}

/** The id of a checkpoint, or the id or name that stands for one. @throws SandglassError `invalid_request` for anything else. */
export function checkpointIdOf(checkpoint: SessionCheckpoint | string): string {
  const id: unknown = typeof checkpoint === 'string' ? checkpoint : checkpoint?.id
  if (typeof id === 'string') return id
  throw new SandglassError(
    'invalid_request',
    `checkpoint: ${formatValue(checkpoint)} is neither a checkpoint nor its id or name`,
  )
}
