import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Workspace } from '../../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { testSerialActivities } from '../../support/serial-activities.ts'

const { skip } = await requireLocalEngine()
const wrapper = fileURLToPath(new URL('../../support/without-keepers.py', import.meta.url))
const path = process.env['PATH'] ?? ''

/* The same as on gVisor (test/daemon/workspace/gvisor.test.ts), on a kernel that has no keepers for another reason. */
describe.skipIf(skip)('in a workspace on a kernel without pidfds and subreapers', () => {
  let sg: Sandglass
  let ws: Workspace
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-serial-'))
  beforeAll(async () => {
    const bwrap = execFileSync('sh', ['-c', 'command -v bwrap'], { encoding: 'utf8' }).trim()
    // It runs as the uid of the sandbox, which reaches neither a private directory nor the tree.
    chmodSync(directory, 0o755)
    const own = join(directory, 'without-keepers.py')
    copyFileSync(wrapper, own)
    chmodSync(own, 0o644)
    writeFileSync(join(directory, 'bwrap'), `#!/bin/sh\nexec python3 ${own} ${bwrap} "$@"\n`)
    chmodSync(join(directory, 'bwrap'), 0o755)
    process.env['PATH'] = `${directory}:${path}`
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
    ws = await sg.workspace()
  }, 60_000)
  afterAll(async () => {
    await sg.close()
    process.env['PATH'] = path
    rmSync(directory, { recursive: true })
  })

  testSerialActivities({
    get sg() {
      return sg
    },
    get ws() {
      return ws
    },
  })

  test('an agent’s scripts run one after the other, and their files are found', async () => {
    const tool = sg.asTool({ workspace: ws, collect: ['*.txt'] })
    const first = await tool.execute({ script: 'open("note.txt", "w").write("kept"); emit_result(1)' })
    expect(JSON.stringify(first)).toContain('note.txt')
    const second = await tool.execute({ script: 'emit_result(open("note.txt").read())' })
    expect(JSON.stringify(second)).toContain('kept')
  })
})
