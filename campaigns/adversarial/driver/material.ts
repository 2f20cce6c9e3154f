import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, openSync, readSync } from 'node:fs'
import type { AcceptanceCase } from './case.ts'

/** A Python expression, for values that are too large to write out. */
export interface PythonExpression {
  readonly python_expr: string
}

/** Returns true for a value that Python must compute. */
export function isPythonExpression(value: unknown): value is PythonExpression {
  return typeof value === 'object' && value !== null && 'python_expr' in value && typeof value.python_expr === 'string'
}

/** Evaluates a Python expression to text, with the real python3. */
export function evaluateText({ python_expr: expression }: PythonExpression): string {
  const program = `import sys; sys.stdout.buffer.write((${expression}).encode("utf-8", "surrogatepass"))`
  return execFileSync('python3', ['-c', program], { encoding: 'utf8', maxBuffer: 1 << 28 })
}

/** Writes the bytes of a Python expression to a file, so that this process does not hold them in memory. */
export function evaluateIntoFile({ python_expr: expression }: PythonExpression, path: string): void {
  const fd = openSync(path, 'w')
  try {
    const program = `import sys; sys.stdout.buffer.write(${expression})`
    const { status } = spawnSync('python3', ['-c', program], { stdio: ['ignore', fd, 'inherit'] })
    if (status !== 0) throw new Error(`python3 could not evaluate ${expression}`)
  } finally {
    closeSync(fd)
  }
}

/** The bytes of a file in pieces of 64 KiB. */
export function* chunksOf(path: string): Generator<Uint8Array, void, void> {
  const fd = openSync(path, 'r')
  try {
    for (;;) {
      const chunk = Buffer.allocUnsafe(65_536)
      const length = readSync(fd, chunk)
      if (length === 0) return
      yield chunk.subarray(0, length)
    }
  } finally {
    closeSync(fd)
  }
}

/** The script of a case whose material is one text. */
export function scriptOf({ id, script_or_input: material }: AcceptanceCase): string {
  if (typeof material === 'string') return material
  if (isPythonExpression(material)) return evaluateText(material)
  throw new Error(`${id}: script_or_input must be text or a python_expr`)
}
