import { isAbsolute } from 'node:path'
import { didYouMean, formatValue, MAX_TIMER_MS } from '../../support/index.ts'
import type { KubernetesEngineOptions } from './options.ts'

const IMAGE = /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/
/** A name of an object: it becomes a part of a URL. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

const TOLERATION: ReadonlySet<string> = new Set(['key', 'operator', 'value', 'effect'])

type Check = (value: unknown) => string | undefined

/** The check of each option. It describes the problem, or returns undefined. */
const CHECKS: Readonly<Record<keyof KubernetesEngineOptions, Check>> = {
  kubeconfig: (value) => (isText(value) ? undefined : 'must be the path of a kubeconfig'),
  context: (value) => (isText(value) ? undefined : 'must be the name of a context of the kubeconfig'),
  namespace: (value) => (isName(value) ? undefined : 'must be the name of a namespace'),
  image: (value) => (isImage(value) ? undefined : 'must be the name of an image, like python:3.12-slim'),
  python: (value) =>
    isText(value) && (!value.includes('/') || isAbsolute(value)) ? undefined : 'must be a name or an absolute path',
  rootOnlyDir: (value) =>
    isText(value) && /^(\/[\w.-]+)+$/.test(value) ? undefined : 'must be an absolute path of a directory',
  imagePullSecrets: (value) =>
    Array.isArray(value) && value.every(isName) ? undefined : 'must be a list of names of secrets',
  nodeSelector: (value) =>
    isRecord(value) && Object.values(value).every((one) => typeof one === 'string')
      ? undefined
      : 'must be labels of nodes: names with texts',
  tolerations: (value) =>
    Array.isArray(value) && value.every((one) => isRecord(one) && Object.keys(one).every((key) => TOLERATION.has(key)))
      ? undefined
      : 'must be a list of objects with key, operator, value and effect',
  runtimeClassName: (value) => (isName(value) ? undefined : 'must be the name of a RuntimeClass'),
  volumeClaims: (value) =>
    isRecord(value) && Object.entries(value).every(([path, claim]) => isAbsolute(path) && isName(claim))
      ? undefined
      : 'must be names of claims by absolute paths, like { "/mnt/envs": "envs" }',
  volumeImages: (value) =>
    isRecord(value) && Object.entries(value).every(([path, image]) => isAbsolute(path) && isImage(image))
      ? undefined
      : 'must be names of images by absolute paths, like { "/mnt/envs/ml": "registry.example/envs/ml:3" }',
  hostUsers: (value) => (typeof value === 'boolean' ? undefined : 'must be true or false'),
  cpuRequest: (value) =>
    typeof value === 'number' && value >= 0.01 && value <= 1024
      ? undefined
      : 'must be a number of CPUs from 0.01 to 1024',
  startTimeoutMs: checkMilliseconds,
  apiTimeoutMs: checkMilliseconds,
}

/** @throws TypeError naming the option that is wrong or does not exist. */
export function checkOptions(options: KubernetesEngineOptions): void {
  for (const [name, value] of Object.entries(options) as [keyof KubernetesEngineOptions, unknown][]) {
    if (!Object.hasOwn(CHECKS, name)) {
      throw new TypeError(`kubernetes.${name}: unknown option.${didYouMean(name, Object.keys(CHECKS))}`)
    }
    const problem = value === undefined ? undefined : CHECKS[name](value)
    if (problem !== undefined) throw new TypeError(`kubernetes.${name}: ${problem}, not ${formatValue(value)}`)
  }
}

function checkMilliseconds(value: unknown): string | undefined {
  const fits = typeof value === 'number' && value >= 1 && value <= MAX_TIMER_MS
  return fits ? undefined : `must be a number of milliseconds from 1 to ${MAX_TIMER_MS}`
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0')
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isImage(value: unknown): boolean {
  return isText(value) && IMAGE.test(value)
}

function isName(value: unknown): boolean {
  return isText(value) && NAME.test(value)
}
