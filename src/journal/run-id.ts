import { randomBytes } from 'node:crypto'

const PATTERN = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{3})-[0-9a-f]{8}$/

/** An id for a run: its start in UTC, so that names are in order of time, and a random part. */
export function newRunId(now: Date = new Date()): string {
  return `${now.toISOString().replaceAll(/[-:.Z]/g, '')}-${randomBytes(4).toString('hex')}`
}

/** When a run of this id began, as ISO 8601, or undefined for what is no id. */
export function startOfRunId(runId: string): string | undefined {
  const found = PATTERN.exec(runId)
  if (found === null) return undefined
  const [, year, month, day, hour, minute, second, ms] = found
  return `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`
}

/** @throws TypeError for what is no id: it becomes the name of a file. */
export function checkRunId(runId: string): string {
  if (typeof runId !== 'string' || !PATTERN.test(runId)) {
    throw new TypeError(`runId: ${JSON.stringify(String(runId).slice(0, 80))} is no id of a run`)
  }
  return runId
}
