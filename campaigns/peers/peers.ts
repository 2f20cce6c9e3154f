import { join } from 'node:path'
import { MACHINE_ENGINES } from '../../test/support/walls.ts'
import type { Installed } from './install.ts'

/** One row of the comparison. */
export interface Peer {
  readonly id: string
  readonly name: string
  /** True if it needs the Docker daemon. */
  readonly docker: boolean
  readonly command: readonly string[]
  /** The packages whose versions are reported. */
  readonly packages: readonly string[]
}

const DRIVERS = join(import.meta.dirname, 'drivers')

/** All rows, in the order of the table. */
export function peers(at: Installed | undefined): Peer[] {
  const sandglass = (engine: string): Peer => ({
    id: `sandglass-${engine}`,
    name: `Sandglass, \`${engine}\``,
    docker: engine === 'docker',
    command: [process.execPath, join(DRIVERS, 'sandglass.ts'), engine],
    packages: [],
  })
  const python = (id: string, name: string, packages: readonly string[], docker = false): Peer => ({
    id,
    name,
    docker,
    command: [at?.python ?? '', '-B', join(DRIVERS, 'python/main.py'), id],
    packages,
  })
  const own = MACHINE_ENGINES.map(sandglass)
  if (at === undefined) return own
  return [
    ...own,
    python('docker-run', 'plain `docker run`', [], true),
    python('llm-sandbox', 'llm-sandbox (Docker)', ['llm-sandbox'], true),
    python('smolagents-docker', "smolagents' DockerExecutor", ['smolagents'], true),
    python('smolagents-local', "smolagents' LocalPythonExecutor", ['smolagents']),
    python('jupyter', 'Jupyter kernel', ['jupyter-client', 'ipykernel']),
    {
      id: 'srt',
      name: 'srt (sandbox-runtime)',
      docker: false,
      command: [process.execPath, join(DRIVERS, 'srt.ts'), at.srt, '/usr/bin/python3'],
      packages: ['@anthropic-ai/sandbox-runtime'],
    },
    python('monty', 'Monty', ['pydantic-monty']),
  ]
}
