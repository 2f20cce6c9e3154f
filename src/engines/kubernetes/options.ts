/** A toleration, as in the spec of a pod. */
export interface Toleration {
  readonly key?: string
  readonly operator?: 'Exists' | 'Equal'
  readonly value?: string
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
}

/** Options of the Kubernetes engine. */
export interface KubernetesEngineOptions {
  /**
   * Path of a kubeconfig. Default: KUBECONFIG of the environment, else `~/.kube/config`, else the service account of the pod in
   * which this process runs.
   */
  readonly kubeconfig?: string
  /** A context of the kubeconfig. Default: its current one. */
  readonly context?: string
  /** The namespace of the pods. Default: that of the context or of the service account, else `default`. */
  readonly namespace?: string
  /** An image with `python3` of at least 3.10, which the nodes can pull. Default `python:3.12-slim`. */
  readonly image?: string
  /** The Python in the image: a name on its PATH or an absolute path. Default `python3`. */
  readonly python?: string
  /**
   * A directory of the image that only root may enter. Kubernetes gives each container a file of its node for a last message,
   * without a size limit; there no script reaches it. Default `/root`, else `/var/cache/ldconfig`.
   */
  readonly rootOnlyDir?: string
  /** Names of secrets of the namespace with which the nodes pull the image. */
  readonly imagePullSecrets?: readonly string[]
  /** Labels of the nodes on which sandboxes may run. */
  readonly nodeSelector?: Readonly<Record<string, string>>
  /** Taints of nodes that sandboxes tolerate, as in the spec of a pod. */
  readonly tolerations?: readonly Toleration[]
  /** A RuntimeClass of the cluster. Default: the cluster's own runtime. One of gVisor raises the level. */
  readonly runtimeClassName?: string
  /**
   * `hostUsers` of the spec of a pod. With false, each pod has a user namespace of its own, in which its uids are none of the node. It
   * is refused if a pod has none all the same (`feature_unavailable`). Default: left to the cluster, which means true.
   */
  readonly hostUsers?: boolean
  /**
   * The CPUs that the scheduler reserves for a sandbox, at least 0.01. Default: its limit, so that a node never has more sandboxes
   * than CPUs (QoS class Guaranteed). Idle sandboxes use next to none.
   */
  readonly cpuRequest?: number
  /**
   * PersistentVolumeClaims of the namespace, by the directory of this host that has the same content: `{ '/mnt/envs': 'envs' }`. Of
   * `packages`, `toolsDir` and environments of `dependencies`, pods mount those below such a directory from the claim, read-only. All
   * others are sent to each pod. Default: none.
   */
  readonly volumeClaims?: Readonly<Record<string, string>>
  /**
   * Images, by the directory of this host that has the same content: `{ '/mnt/envs/ml': 'registry.example/envs/ml:3' }`. Directories
   * as in `volumeClaims` that are below such a path are mounted from the image, read-only (`volumes[].image`). Of paths in both
   * options the longest decides, of equal ones that of the claim. The nodes pull the images as they pull `image`. Default: none.
   */
  readonly volumeImages?: Readonly<Record<string, string>>
  /**
   * The time that a pod may take to be scheduled and to pull its image, then to get its packages, then to become ready, each in
   * milliseconds. Default 60,000.
   */
  readonly startTimeoutMs?: number
  /** The time that the API server may take to answer a request, in milliseconds. Default 10,000. */
  readonly apiTimeoutMs?: number
}
