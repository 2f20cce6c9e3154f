import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { docker } from '../../../support/containers.ts'
import { openDirectory } from '../../../support/state-directory.ts'
import type { EngineUnderTest } from '../../driver/engine.ts'
import { startHost } from '../../driver/host-process.ts'
import type { Ground } from '../../driver/stage.ts'
import { changed, daemonOf, imageOf } from '../docker.ts'
import { refusalOf } from './hosts.ts'

/** FLT-014: a container in which no system call filter can be loaded serves no script. */
export async function missingFilterFailsClosed({ engine }: Ground): Promise<void> {
  const image = imageWithoutSeccomp(engine)
  try {
    await using host = startHost(engine, { state: changed(engine, { image }) })
    const error = await refusalOf(host)
    assert.ok(['harness_start_failed', 'sandbox_setup_failed'].includes(error.code), `${error.code}: ${error.message}`)
    assert.deepEqual(engine.sandboxesOf(host.pid), [])
  } finally {
    docker(daemonOf(engine), 'rmi', '--no-prune', image)
  }
}

/** The image whose `python3` first makes the kernel look as one without seccomp. */
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
