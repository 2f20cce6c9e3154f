import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findBubblewrap } from '../../../../src/engines/pyodide/bubblewrap.ts'
import { pyodideEngine, type PyodideEngineOptions } from '../../../../src/engines/pyodide/index.ts'
import type { SandboxEngine, SandboxSpec } from '../../../../src/sandbox/index.ts'
import { ScriptExecutor } from '../../../../src/executor/index.ts'
import type { ExecutionResult, RunRequest } from '../../../../src/executor/index.ts'
import { skipFor } from '../../../support/required.ts'

const MiB = 1024 * 1024

/** The spec of the sandboxes of these tests. */
export const SPEC: SandboxSpec = {
  limits: { memoryBytes: 160 * MiB, cpus: 1, pids: 128, diskBytes: 8 * MiB },
}

/** A directory that is removed when its scope ends. */
export function place(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-pyodide-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** An engine that keeps its snapshot there. */
export function engineAt(cacheDir: string, options: PyodideEngineOptions = {}): SandboxEngine {
  return pyodideEngine({ cacheDir, ...options })
}

/** Checks that instances run in bubblewrap on this machine. Prints the reason if not, or throws it where `local` is required. */
export async function requireBubblewrap(): Promise<{ readonly skip: boolean }> {
  const box = await findBubblewrap(true, { program: process.execPath, args: [], readable: [] })
  if (box.bwrap === undefined) skipFor('local', `Pyodide in bubblewrap: ${box.reason}`)
  return { skip: box.bwrap === undefined }
}

/** Runs one script in a sandbox of its own. */
export async function runOn(
  engine: SandboxEngine,
  script: string,
  { spec = {}, ...request }: Partial<RunRequest> & { readonly spec?: Partial<SandboxSpec> } = {},
): Promise<ExecutionResult> {
  await using sandbox = await engine.create({ ...SPEC, ...spec })
  return await new ScriptExecutor({ mode: 'interactive' }).run({ ...request, script, sandbox })
}
