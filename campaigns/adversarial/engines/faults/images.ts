import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { docker } from '../../../../test/support/containers.ts'
import { openDirectory } from '../../../../test/support/state-directory.ts'
import type { EngineUnderTest } from '../../driver/engine.ts'
import { startHost } from '../../driver/host-process.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { stateWith, daemonOf, imageOf } from '../docker.ts'
import { openError } from './hosts.ts'

/** FLT-014: a container that cannot load a system call filter runs no script. */
export async function failsClosedWithoutFilter({ engine }: CaseContext): Promise<void> {
  const image = imageWithoutSeccomp(engine)
  try {
    await using host = startHost(engine, { state: stateWith(engine, { image }) })
    const error = await openError(host)
    assert.ok(['harness_start_failed', 'sandbox_setup_failed'].includes(error.code), `${error.code}: ${error.message}`)
    assert.deepEqual(engine.sandboxesOf(host.pid), [])
  } finally {
    docker(daemonOf(engine), 'rmi', '--no-prune', image)
  }
}

/** Makes an image whose `python3` starts as on a kernel without seccomp. */
function imageWithoutSeccomp(engine: EngineUnderTest): string {
  const daemon = daemonOf(engine)
  const name = `sandglass-no-seccomp-${randomUUID()}`
  const directory = openDirectory('image')
  const [wrapper, program] = [join(directory, 'python3'), join(directory, 'no-seccomp.py')]
  const run = ['run', '--rm', '--network', 'none', '--entrypoint', 'sh', imageOf(engine)]
  const python = docker(daemon, ...run, '-c', 'command -v python3').trim()
  writeFileSync(wrapper, `#!/bin/sh\nexec ${python} -I /no-seccomp.py ${python} "$@"\n`, { mode: 0o755 })
  writeFileSync(program, readFileSync(fileURLToPath(new URL('no-seccomp.py', import.meta.url))), { mode: 0o644 })
  docker(daemon, 'create', '--name', name, '--network', 'none', imageOf(engine), 'true')
  try {
    docker(daemon, 'cp', wrapper, `${name}:/usr/local/sbin/python3`)
    docker(daemon, 'cp', program, `${name}:/no-seccomp.py`)
    docker(daemon, 'commit', name, name)
  } finally {
    docker(daemon, 'rm', name)
    rmSync(directory, { recursive: true })
  }
  return name
}
