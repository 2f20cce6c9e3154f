import { randomBytes } from 'node:crypto'
import { formatValue } from '../support/index.ts'

const PATTERN = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{3})-[0-9a-f]{8}$/

/** Creates the id of a task, `run_id` in the journal: its start in UTC, so that ids sort by time, and a random part. */
export function newRunId(now: Date = new Date()): string {
  return `${now.toISOString().replaceAll(/[-:.Z]/g, '')}-${randomBytes(4).toString('hex')}`
}

/** The start of a task by its id, as ISO 8601; undefined if the id is malformed. */
export function startOfRunId(runId: string): string | undefined {
  const found = PATTERN.exec(runId)
  if (found === null) return undefined
  const [, year, month, day, hour, minute, second, ms] = found
  return `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`
}

/** Checks an id, which becomes a file name. @throws TypeError if it is malformed. */
export function checkRunId(runId: string): string {
  if (typeof runId !== 'string' || !PATTERN.test(runId)) {
    throw new TypeError(`runId: ${formatValue(runId)} is not the id of a task`)
  }
  return runId
}
