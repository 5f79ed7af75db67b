#include "base/field_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace thimble {
namespace {

const std::vector<FieldWords> kWords = {
    {"microbatch",
     "gradient accumulation is --microbatch N, the rows computed at once",
     {"gradient-accumulation", "gradient-accumulation-steps", "grad-accumulation",
      "grad-accumulation-steps", "grad-accum", "grad-accum-steps", "accumulate-grad-batches",
      "accumulation-steps", "accumulate", "micro-batch", "micro-batch-size", "microbatch-size",
      "micro-batches", "microbatches", "num-microbatches"}},
    {"memory",
     "a budget, --memory BYTES, decides what is recomputed (activation checkpointing)",
     {"rematerialization",
      "rematerialisation",
      "rematerialize",
      "remat",
      "recomputation",
      "activation-checkpointing",
      "activation-checkpoint",
      "gradient-checkpointing",
      "gradient-checkpoint",
      "grad-checkpointing",
      "checkpoint-activations",
      "recompute-activations",
      "recompute-granularity",
      "memory-budget",
      "memory-limit",
      "max-memory",
      "mem-limit",
      "vram",
      "max-vram",
      "gpu-memory",
      "ram"}},
    {"memory",
     "no tensor is moved to host memory; a budget, --memory BYTES, recomputes instead",
     {"offload", "cpu-offload", "host-offload", "activation-offload", "activation-offloading",
      "offload-activations", "offload-optimizer", "optimizer-offload", "zero-offload"}},
    {"precision",
     "mixed precision is --precision bf16 (or fp16) with --master for fp32 master weights",
     {"mixed-precision", "amp", "autocast", "fp16", "bf16", "half", "half-precision", "dtype",
      "torch-dtype", "compute-dtype"}},
    {"master", "fp32 master weights are --master", {"master-weights", "fp32-master-weights"}},
    {"shard",
     "--shard state, gradients or weights is ZeRO-1, ZeRO-2 or ZeRO-3 (FSDP)",
     {"fsdp", "zero", "zero-stage", "zero-1", "zero-2", "zero-3", "zero1", "zero2", "zero3",
      "deepspeed", "fully-sharded", "sharded", "sharding-strategy", "shard-strategy"}},
    {"ranks",
     "data parallelism is `mpirun -np N thimble train ...`; --ranks N plans for it",
     {"data-parallel", "data-parallel-size", "ddp", "distributed", "world-size", "num-gpus", "gpus",
      "n-gpus", "nproc", "nproc-per-node", "num-processes"}},
    {"codec",
     "activation compression is --codec NAME",
     {"activation-compression", "compress-activations", "activation-quantization",
      "quantize-activations", "compression"}},
    {"state-bits",
     "an 8-bit optimizer is --state-bits 8",
     {"8bit-optimizer", "optimizer-8bit", "use-8bit-adam", "8bit-adam", "optim-bits",
      "optimizer-bits"}},
    {"density",
     "sparse training is --density X, the share of nonzeros",
     {"pruning", "prune", "sparse-training", "dynamic-sparse-training"}},
    {"warmup",
     "a warm-up is --warmup X in epochs, or --warmup 'N steps'",
     {"warmup-steps", "warmup-epochs", "num-warmup-steps", "warmup-ratio", "lr-warmup"}},
    {"save-every",
     "checkpoints are written every --save-every X epochs, or 'N steps'",
     {"save-steps", "save-interval", "save-freq", "save-strategy", "checkpoint-interval",
      "checkpoint-every"}},
    {"eval-every",
     "tests run every --eval-every X epochs, or 'N steps'",
     {"eval-steps", "eval-interval", "eval-freq", "evaluation-strategy", "val-check-interval"}},
    {"costs",
     "times of kernels are --costs FILE; `thimble calibrate` measures them",
     {"autotune", "profile-kernels"}},
    {"batch",
     "",
     {"batch-size", "bs", "train-batch-size", "global-batch-size", "minibatch", "mini-batch",
      "mini-batch-size", "per-device-train-batch-size"}},
    {"tokens", "", {"max-tokens", "tokens-per-batch", "token-batch-size"}},
    {"lr", "", {"learning-rate", "learningrate", "alpha", "base-lr", "max-lr", "init-lr"}},
    {"epochs", "", {"epoch", "num-epochs", "num-train-epochs", "max-epochs", "n-epochs"}},
    {"steps",
     "",
     {"max-steps", "num-steps", "train-steps", "num-train-steps", "total-steps", "iters",
      "iterations", "max-iters", "max-iterations", "num-iterations"}},
    {"schedule", "", {"lr-schedule", "lr-scheduler", "lr-scheduler-type", "scheduler", "sched"}},
    {"factor", "", {"gamma", "lr-decay", "decay-rate", "lr-gamma"}},
    {"milestones", "", {"lr-steps", "lr-milestones"}},
    {"optimizer", "", {"optim", "optimiser", "opt"}},
    {"weight-decay", "", {"wd", "l2", "decay"}},
    {"clip-norm",
     "",
     {"max-grad-norm", "clip-grad", "clip-grad-norm", "grad-clip", "gradient-clip",
      "gradient-clipping", "gradient-clip-val", "max-norm"}},
    {"epsilon", "", {"eps", "adam-epsilon", "adam-eps"}},
    {"beta1", "", {"adam-beta1"}},
    {"beta2", "", {"adam-beta2"}},
    {"loss-scale", "", {"loss-scaling", "grad-scaler", "gradient-scaling", "initial-loss-scale"}},
    {"label-smoothing", "", {"label-smoothing-factor", "smoothing", "ls"}},
    {"tf32", "", {"allow-tf32", "use-tf32"}},
    {"device", "", {"gpu", "cuda", "use-cuda", "accelerator"}},
    {"threads", "", {"num-threads", "cpu-threads", "num-workers", "workers"}},
    {"seed", "", {"random-seed", "manual-seed", "rng-seed"}},
    {"data", "", {"dataset", "data-set", "dataset-name"}},
    {"data-dir", "", {"data-path", "data-root", "data-folder", "dataset-dir", "dataset-path"}},
    {"out",
     "",
     {"output", "output-dir", "out-dir", "save-dir", "checkpoint-dir", "ckpt-dir", "log-dir",
      "logdir", "run-dir"}},
    {"resume", "", {"resume-from", "resume-from-checkpoint", "continue", "restore"}},
    {"weights",
     "",
     {"pretrained", "init-from", "load", "load-from", "checkpoint-path", "initial-weights",
      "init-weights"}},
    {"keep-checkpoints", "", {"save-total-limit", "max-checkpoints", "keep-last"}},
    {"layers", "", {"num-layers", "n-layers", "n-layer", "depth", "num-hidden-layers"}},
    {"heads", "", {"num-heads", "n-heads", "n-head", "num-attention-heads"}},
    {"hidden", "", {"hidden-size", "hidden-dim"}},
    {"width", "", {"d-model", "n-embd", "embed-dim", "model-dim"}},
    {"length",
     "",
     {"seq-len", "seq-length", "sequence-length", "context-length", "max-length", "max-seq-len",
      "max-seq-length", "block-size", "n-ctx"}},
    {"vocabulary", "", {"vocab", "vocab-size", "vocabulary-size"}},
    {"classes", "", {"num-classes", "n-classes", "num-labels"}},
    {"dropout", "", {"drop", "drop-rate", "dropout-rate", "dropout-p"}},
    {"image", "", {"image-size", "img-size", "input-size", "resolution"}},
    {"augment", "", {"augmentation", "aug", "data-augmentation"}},
    {"planner", "", {"remat-policy", "recompute-policy", "checkpoint-policy", "policy"}},
    {"recompute", "", {"checkpoint-layers", "remat-layers"}},
    {"export-initial", "", {"save-initial"}},
};

}  // namespace

std::span<const FieldWords> all_field_words() { return kWords; }

std::optional<std::string> in_our_words(std::string_view name, std::span<const std::string> known) {
  std::string wanted(name);
  for (char& c : wanted) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const FieldWords& words : kWords) {
    if (std::ranges::find(words.theirs, wanted) == words.theirs.end()) continue;
    if (std::ranges::find(known, words.ours) == known.end()) return std::nullopt;
    if (!words.explanation.empty()) return std::string(words.explanation);
    return fmt::format("its name here is --{}", words.ours);
  }
  return std::nullopt;
}

}  // namespace thimble
