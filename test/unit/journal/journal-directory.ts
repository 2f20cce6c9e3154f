import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'

/** Makes an empty directory for each test of a file and removes it afterwards; the returned function gives its path. */
export function journalDirectory(): () => string {
  let directory = ''
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sandglass-journal-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))
  return () => directory
}
