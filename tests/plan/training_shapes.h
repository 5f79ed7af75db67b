// Buffer uses with the shape of real training steps, for packers to be tried on: a forward pass
// that keeps what backward reads, a backward pass that frees it in reverse, transients, persistent
// weights and optimizer state. Sizes are in the proportions of the named nets. Deterministic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// A tape: values are born at the call that computes them and die at their last use.
class Tape {
 public:
  int call() { return now_++; }
  int now() const { return now_; }
  int value(int64_t size) {
    uses.push_back({Bytes(size), now_, now_});
    return int(uses.size()) - 1;
  }
  void use(int value) { uses[value].last = now_; }
  // Alive from the first call to the last.
  void persistent(int64_t size) { persistent_.push_back(Bytes(size)); }
  std::vector<BufferUse> finish() {
    for (const Bytes size : persistent_) uses.push_back({size, 0, now_});
    return uses;
  }

  std::vector<BufferUse> uses;

 private:
  int now_ = 0;
  std::vector<Bytes> persistent_;
};

inline uint64_t next_random(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Residual blocks conv-bn-relu-conv-bn-add-relu in three stages of halving activations, about
// `buffers` of them. Segments of `segment` blocks keep only their input and are recomputed in
// backward; 0 keeps everything. Each microbatch repeats the step between persistent weights.
inline std::vector<BufferUse> residual_net(int buffers, int segment, int microbatches = 1) {
  const int per_block = segment ? 26 : 20;
  const int blocks = std::max(3, buffers / per_block / microbatches);
  Tape tape;
  const auto stage = [&](int block) { return 3 * block / blocks; };
  const auto act = [&](int block) { return int64_t(401408 + 4 * block % 96) >> stage(block); };
  const auto weight = [&](int block) { return int64_t(9216) << (2 * stage(block)); };
  struct Kept {
    int input, conv1, norm1, conv2, norm2, stat1, stat2, mask;
  };
  // The block's forward calls; returns its output. Keeps what `kept` names.
  const auto forward = [&](int block, int input, Kept& kept) {
    const int64_t bytes = act(block), statistic = 256 << stage(block);
    kept.input = input;
    const auto conv = [&](int from) {
      const int out = tape.value(bytes);
      tape.value(bytes / 3 + 1000);  // workspace
      tape.use(from);
      tape.call();
      return out;
    };
    const auto norm = [&](int from, int& saved) {
      const int out = tape.value(bytes);
      saved = tape.value(statistic);
      tape.use(from);
      tape.call();
      return out;
    };
    kept.conv1 = conv(input);
    kept.norm1 = norm(kept.conv1, kept.stat1);
    kept.conv2 = conv(kept.norm1);
    kept.norm2 = norm(kept.conv2, kept.stat2);
    const int out = tape.value(bytes);
    kept.mask = tape.value(bytes / 32);
    tape.use(kept.norm2), tape.use(input);
    tape.call();
    return out;
  };
  const auto backward = [&](int block, int gradient, const Kept& kept) {
    const int64_t bytes = act(block);
    const auto norm = [&](int from, int conv, int statistic) {
      const int out = tape.value(bytes);
      tape.value(statistic ? 2048 : 1024);
      tape.use(from), tape.use(conv), tape.use(statistic);
      tape.call();
      return out;
    };
    const auto conv = [&](int from, int input, int64_t size) {
      const int to_weight = tape.value(weight(block));
      tape.value(bytes / 2 + 4096);  // workspace
      tape.use(from), tape.use(input);
      tape.call();
      tape.use(to_weight);  // the update
      tape.call();
      const int out = tape.value(size);
      tape.value(bytes / 3 + 1000);
      tape.use(from);
      tape.call();
      return out;
    };
    const int masked = tape.value(bytes);
    tape.use(gradient), tape.use(kept.mask);
    tape.call();
    const int g2 = conv(norm(masked, kept.conv2, kept.stat2), kept.norm1, bytes);
    const int g1 = conv(norm(g2, kept.conv1, kept.stat1), kept.input, act(std::max(0, block - 1)));
    const int sum = tape.value(act(std::max(0, block - 1)));
    tape.use(g1), tape.use(masked);
    tape.call();
    return sum;
  };
  for (int b = 0; b < blocks; ++b) {
    tape.persistent(2 * weight(b)), tape.persistent(2 * weight(b)), tape.persistent(1024);
  }
  for (int m = 0; m < microbatches; ++m) {
    std::vector<Kept> kept(blocks);
    std::vector<int> inputs{tape.value(act(0) / 4)};
    for (int b = 0; b < blocks; ++b) inputs.push_back(forward(b, inputs.back(), kept[b]));
    int gradient = tape.value(act(blocks - 1));
    tape.use(inputs.back());
    tape.call();
    for (int end = blocks; end > 0;) {
      const int begin = segment ? (end - 1) / segment * segment : end - 1;
      if (segment) {
        for (int b = begin, in = inputs[begin]; b < end; ++b) in = forward(b, in, kept[b]);
      }
      for (int b = end - 1; b >= begin; --b) gradient = backward(b, gradient, kept[b]);
      end = begin;
    }
  }
  return tape.finish();
}

// One recurrent layer unrolled: gates, cell and hidden state per time step, all nearly the same size.
inline std::vector<BufferUse> recurrent_net(int buffers) {
  const int calls = std::max(2, buffers / 9);
  const int64_t hidden = 20 * 512 * 4;
  Tape tape;
  tape.persistent(4 * 512 * 1024 * 4), tape.persistent(4 * 512 * 1024 * 4);
  struct Kept {
    int gates, cell, tanh, hidden;
  };
  std::vector<Kept> kept;
  for (int s = 0; s < calls; ++s) {
    Kept k{};
    const int raw = tape.value(4 * hidden);
    if (s) tape.use(kept.back().hidden);
    tape.call();
    k.gates = tape.value(4 * hidden), k.cell = tape.value(hidden);
    tape.use(raw);
    if (s) tape.use(kept.back().cell);
    tape.call();
    k.tanh = tape.value(hidden), k.hidden = tape.value(hidden + 64);
    tape.use(k.cell), tape.use(k.gates);
    tape.call();
    kept.push_back(k);
  }
  int to_hidden = tape.value(hidden), to_cell = tape.value(hidden);
  tape.call();
  for (int s = calls - 1; s >= 0; --s) {
    const Kept& k = kept[s];
    const int to_gates = tape.value(4 * hidden), cell = tape.value(hidden);
    tape.use(to_hidden), tape.use(to_cell), tape.use(k.gates), tape.use(k.tanh), tape.use(k.cell);
    if (s) tape.use(kept[s - 1].cell);
    tape.call();
    to_hidden = tape.value(hidden), to_cell = cell;
    tape.value(4096);
    tape.use(to_gates), tape.use(cell);
    if (s) tape.use(kept[s - 1].hidden);
    tape.call();
  }
  return tape.finish();
}

// An encoder-decoder: every encoder layer's output is read again by the decoder layer opposite it,
// every decoder layer reads the last encoder output; sizes vary from layer to layer.
inline std::vector<BufferUse> encoder_decoder(int buffers, uint64_t seed) {
  const int layers = std::max(4, buffers / 8);
  Tape tape;
  const auto size = [&](int layer) {
    return int64_t(4096) +
           int64_t(next_random(seed) % 8192) * (1 + std::min(layer, layers - layer) % 17);
  };
  std::vector<int> kept, wide;
  for (int layer = 0; layer < layers; ++layer) {
    const int out = tape.value(size(layer));
    wide.push_back(tape.value(4 * size(layer)));
    tape.value(size(layer) / 2);
    if (layer) tape.use(kept.back());
    if (layer > layers / 2) tape.use(kept[layers - layer]), tape.use(kept[layers / 2]);
    kept.push_back(out);
    tape.call();
  }
  std::vector<int> skip(layers, -1);
  int gradient = tape.value(size(layers - 1)), shared = tape.value(size(layers / 2));
  tape.call();
  for (int layer = layers - 1; layer >= 0; --layer) {
    const int next = tape.value(size(layer)), hidden = tape.value(4 * size(layer));
    tape.value(size(layer) * 3 / 2);
    tape.use(gradient), tape.use(kept[layer]), tape.use(wide[layer]);
    tape.call();
    if (layer > layers / 2) {
      skip[layers - layer] = tape.value(size(layers - layer));
      tape.use(shared);
    }
    if (skip[layer] >= 0) tape.use(skip[layer]);
    tape.use(hidden), tape.use(next);
    tape.call();
    gradient = next;
  }
  return tape.finish();
}

// Independent sizes and lifetimes, most of them short.
inline std::vector<BufferUse> random_uses(int buffers, int calls, int64_t largest, uint64_t seed) {
  std::vector<BufferUse> uses;
  for (int b = 0; b < buffers; ++b) {
    const int first = int(next_random(seed) % calls);
    const int longest = next_random(seed) % 4 == 0 ? calls : std::max(2, calls / 10);
    const int last = std::min(calls - 1, first + int(next_random(seed) % longest));
    uses.push_back({Bytes(int64_t(1 + next_random(seed) % largest)), first, last});
  }
  return uses;
}

}  // namespace thimble
