import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { findPyodideDirectory } from '../../../../src/engines/pyodide/package-dir.ts'
import { place } from './fixture.ts'

const MODULE = pathToFileURL(join(import.meta.dirname, '../../../../src/engines/pyodide/guest/program.ts')).href
/** Runs in a separate process, because V8 keeps compiled code until its process ends. Saves compiled code, or starts from it. */
const PROGRAM = `
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
const [directory, file] = process.argv.slice(1)
const { loadProgram } = await import(${JSON.stringify(MODULE)})
const { create, createCodeCache, isFromCache } = loadProgram(directory, existsSync(file) ? readFileSync(file) : undefined)
if (!existsSync(file)) writeFileSync(file, createCodeCache())
console.log(typeof create, isFromCache)`

test("V8's compiled code of Pyodide works for any installation path", () => {
  using elsewhere = place()
  const directory = join(elsewhere.path, 'a place with another length $&', sep)
  mkdirSync(directory)
  copyFileSync(`${findPyodideDirectory()}pyodide.asm.mjs`, `${directory}pyodide.asm.mjs`)
  const kept = join(elsewhere.path, 'compiled')
  const wrong = join(elsewhere.path, 'wrong')
  writeFileSync(wrong, new Uint8Array(1000))
  const load = (from: string, file: string): string =>
    execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '--eval', PROGRAM, from, file], {
      encoding: 'utf8',
    }).trim()
  expect(load(findPyodideDirectory(), kept)).toBe('function false')
  expect(load(directory, kept)).toBe('function true')
  expect(load(directory, wrong)).toBe('function false')
})
