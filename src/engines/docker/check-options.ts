import { isAbsolute } from 'node:path'
import { didYouMean, formatValue, MAX_TIMER_MS } from '../../support/index.ts'
import type { DockerEngineOptions } from './options.ts'

/** A name that is safe in a path of the daemon's API: no empty parts, no `..`, no characters with a meaning in URLs. */
const IMAGE = /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/

type Check = (value: unknown) => string | undefined

/** The check of each option. It describes the problem, or returns undefined. */
const CHECKS: Readonly<Record<keyof DockerEngineOptions, Check>> = {
  image: (value) =>
    isText(value) && IMAGE.test(value) ? undefined : 'must be the name of an image, like python:3.12-slim',
  python: (value) =>
    isText(value) && (!value.includes('/') || isAbsolute(value)) ? undefined : 'must be a name or an absolute path',
  runtime: (value) => (isText(value) ? undefined : 'must be the name of a runtime, like runsc'),
  host: (value) => (isText(value) ? undefined : 'must be unix:///path or tcp://host:port'),
  tls: (value) => (isTls(value) ? undefined : 'must be { ca, cert, key }, PEM texts'),
  resources: (value) => (isList(value, isResource) ? undefined : 'must be a list of { source, target }'),
  allowHostPaths: (value) => (isList(value, isAbsolutePath) ? undefined : 'must be a list of absolute paths'),
  hostPathMap: (value) =>
    isObject(value) && Object.entries(value).flat().every(isAbsolutePath)
      ? undefined
      : 'must be an object of absolute paths by absolute path',
  startTimeoutMs: checkMilliseconds,
  apiTimeoutMs: checkMilliseconds,
}

/** @throws TypeError naming the option that is wrong or does not exist. */
export function checkOptions(options: DockerEngineOptions): void {
  for (const [name, value] of Object.entries(options) as [keyof DockerEngineOptions, unknown][]) {
    if (!Object.hasOwn(CHECKS, name)) {
      throw new TypeError(`docker.${name}: unknown option.${didYouMean(name, Object.keys(CHECKS))}`)
    }
    const problem = value === undefined ? undefined : CHECKS[name](value)
    if (problem !== undefined) throw new TypeError(`docker.${name}: ${problem}, not ${formatValue(value)}`)
  }
}

function checkMilliseconds(value: unknown): string | undefined {
  const fits = typeof value === 'number' && value >= 1 && value <= MAX_TIMER_MS
  return fits ? undefined : `must be a number of milliseconds from 1 to ${MAX_TIMER_MS}`
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0')
}

function isAbsolutePath(value: unknown): boolean {
  return isText(value) && isAbsolute(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem)
}

function isResource(value: unknown): boolean {
  return isObject(value) && isText(value['source']) && isText(value['target'])
}

function isTls(value: unknown): boolean {
  const isPem = (part: unknown): boolean => isText(part) || part instanceof Uint8Array
  return isObject(value) && ['ca', 'cert', 'key'].every((name) => isPem(value[name]))
}
