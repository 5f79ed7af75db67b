#include "execute/calibrate.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <unordered_map>

#include "backend/batchable_kernel.h"
#include "backend/tunable_kernel.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes kColdDistance{int64_t{64} << 20};  // between two uses of a byte, in either ring

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Integers are indices and labels: they must be in range, so they read zeros.
bool reads_numbers(const TensorType& type) { return is_floating(type.dtype); }

int updated_input(const OpDef& op, size_t output) {
  for (const Alias& alias : op.updates) {
    if (alias.output == static_cast<int>(output)) return alias.input;
  }
  return -1;
}

// Bytes that are handed out in turn, beginning again at the end. Parts of one run never overlap: a
// kernel that finds its scratch among its results reads wild addresses there.
class Ring {
 public:
  Ring(Backend& backend, Bytes size) : memory_(backend.allocate(size)) {
    // Numbers between 0.5 and 1.5; read as 16-bit floats they are a sane number and a zero.
    std::vector<uint32_t> chunk(1 << 18);
    for (size_t i = 0; i < chunk.size(); ++i) {
      const float number = 0.5f + static_cast<float>(i * 2654435761u % 1024) / 1024;
      chunk[i] = std::bit_cast<uint32_t>(number) & 0xFFFF0000u;
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(chunk));
    for (int64_t at = 0; at < size.count; at += std::ssize(bytes)) {
      const auto count = static_cast<size_t>(std::min(std::ssize(bytes), size.count - at));
      backend.copy_in(memory_->base() + at, bytes.first(count));
    }
  }

  // Makes the next `size` bytes contiguous. REQUIRES: the ring is as large.
  void reserve(Bytes size) {
    if (next_ + size > memory_->size()) next_ = Bytes();
  }

  // REQUIRES: within what was reserved.
  std::byte* take(Bytes size) {
    std::byte* const at = memory_->base() + next_.count;
    next_ += align_up(size);
    return at;
  }

 private:
  std::unique_ptr<Memory> memory_;
  Bytes next_;
};

// The bytes that one run takes from each ring.
struct Need {
  Bytes read;
  Bytes write;
  Bytes zeros;
};

Need need_of(const Signature& signature, const Kernel& kernel) {
  Need need;
  for (const TensorType& type : signature.inputs) {
    Bytes& bytes = reads_numbers(type) ? need.read : need.zeros;
    bytes += align_up(type.bytes());
  }
  for (const TensorType& type : signature.outputs) need.write += align_up(type.bytes());
  need.write += align_up(kernel.workspace);
  return need;
}

class Bench {
 public:
  Bench(const std::vector<KernelUse>& kernels, Backend& backend, Bytes room) : backend_(backend) {
    Need most;
    for (const KernelUse& use : kernels) {
      Kernel& kernel = kernel_of(use);
      const Need need = need_of(use.signature, kernel);
      const auto joined = static_cast<int64_t>(joined_calls(use, kernel));
      most.read = std::max(most.read, need.read * joined);
      most.write = std::max(most.write, need.write * joined);
      most.zeros = std::max(most.zeros, need.zeros);
    }
    const Bytes left((room - most.read - most.write - most.zeros).count / 2);
    const Bytes distance = std::clamp(left, Bytes(), kColdDistance);
    read_ = std::make_unique<Ring>(backend, most.read + distance);
    write_ = std::make_unique<Ring>(backend, most.write + distance);
    zeros_ = backend.allocate(most.zeros + Bytes(kArenaAlignment));
    const std::vector<std::byte> nothing(static_cast<size_t>(zeros_->size().count));
    backend.copy_in(zeros_->base(), nothing);
  }

  // Seconds of one run. Where a device replays captured graphs, of one among many: a step is replayed,
  // too, and a single launch would take longer than most kernels. Batchable kernels run several in a
  // launch, as they do in a step.
  double time(const KernelUse& use) {
    Kernel& kernel = kernel_of(use);
    if (backend_.has_device_memory()) {
      const size_t joined = joined_calls(use, kernel);
      run_somewhere(kernel, use.signature, joined);  // libraries load their code when first used
      backend_.synchronise();
      const std::vector<Launch> launches(kRecorded,
                                         {[&] { run_somewhere(kernel, use.signature, joined); }});
      const auto captured = backend_.capture(launches);
      return backend_.seconds_for([&] { captured->run(); }) /
             static_cast<double>(kRecorded * joined);
    }
    backend_.begin_step();
    const double seconds = backend_.seconds_for([&] { run_somewhere(kernel, use.signature, 1); });
    backend_.end_step();
    return seconds;
  }

 private:
  static constexpr int kRecorded = 10;

  // Tensors of one call and its arguments, which refer to them.
  struct Call {
    std::vector<TensorRef> inputs, outputs;
    KernelArgs args;
  };

  Kernel& kernel_of(const KernelUse& use) {
    Kernel& kernel = backend_.kernel(use.signature);
    if (use.variant >= 0) dynamic_cast<TunableKernel&>(kernel).use(use.variant);
    return kernel;
  }

  static size_t joined_calls(const KernelUse& use, const Kernel& kernel) {
    const auto* const batchable = dynamic_cast<const BatchableKernel*>(&kernel);
    if (batchable == nullptr) return 1;
    constexpr int kMost = 8;  // the rings have room for all of them
    return std::min(batchable->most_joined(), static_cast<size_t>(std::clamp(use.nodes, 1, kMost)));
  }

  // On the next bytes of the rings.
  void run_somewhere(Kernel& kernel, const Signature& signature, size_t joined) {
    calls_.resize(std::max(calls_.size(), joined));
    const Need need = need_of(signature, kernel);
    read_->reserve(need.read * static_cast<int64_t>(joined));
    write_->reserve(need.write * static_cast<int64_t>(joined));
    std::vector<const KernelArgs*> called;
    for (size_t i = 0; i < joined; ++i) {
      place(calls_[i], kernel, signature);
      called.push_back(&calls_[i].args);
    }
    if (joined == 1) return kernel.run(calls_.front().args);
    dynamic_cast<BatchableKernel&>(kernel).run_all(called);
  }

  void place(Call& call, const Kernel& kernel, const Signature& signature) {
    call.inputs.clear();
    call.outputs.clear();
    std::byte* zeros = zeros_->base();
    for (const TensorType& type : signature.inputs) {
      const bool numbers = reads_numbers(type);
      call.inputs.push_back({numbers ? read_->take(type.bytes()) : zeros, type});
      if (!numbers) zeros += align_up(type.bytes()).count;
    }
    for (size_t k = 0; k < signature.outputs.size(); ++k) {
      call.outputs.push_back({write_->take(signature.outputs[k].bytes()), signature.outputs[k]});
      const int input = updated_input(*signature.op, k);
      if (input >= 0) call.inputs[static_cast<size_t>(input)].data = call.outputs.back().data;
    }
    call.args = {};
    call.args.attrs = &signature.attrs;
    call.args.inputs = call.inputs;
    call.args.outputs = call.outputs;
    call.args.accumulate = signature.accumulate;
    call.args.workspace = write_->take(kernel.workspace);
  }

  Backend& backend_;
  std::unique_ptr<Ring> read_, write_;
  std::unique_ptr<Memory> zeros_;
  std::vector<Call> calls_;
};

// The fastest run of every kernel so far: what disturbs a run only ever makes it slower.
class FastestRuns {
 public:
  explicit FastestRuns(const std::vector<KernelUse>& kernels)
      : kernels_(kernels), seconds_(kernels.size()) {}

  bool has(size_t kernel) const { return seconds_[kernel] > 0; }
  void add(size_t kernel, double seconds) {
    double& fastest = seconds_[kernel];
    fastest = has(kernel) ? std::min(fastest, seconds) : seconds;
    round_ += kernels_[kernel].nodes * seconds;
  }
  int measured() const {
    return static_cast<int>(
        std::ranges::count_if(seconds_, [](double seconds) { return seconds > 0; }));
  }

  // REQUIRES: called once after every round. Whether the machine has been quiet of late: rounds
  // took about as long as the fastest runs together, so that more rounds would hardly help.
  bool settled() {
    double sum = 0;
    for (size_t k = 0; k < kernels_.size(); ++k) sum += kernels_[k].nodes * seconds_[k];
    quiet_rounds_ = round_ < kQuiet * sum ? quiet_rounds_ + 1 : 0;
    round_ = 0;
    return quiet_rounds_ >= kEnough;
  }

  CostTable table(const std::string& date) const {
    CostTable table;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      if (has(k)) table[kernels_[k].key] = {seconds_[k], kernels_[k].modelled, date};
    }
    return table;
  }

 private:
  static constexpr double kQuiet = 1.05;
  static constexpr int kEnough = 6;

  const std::vector<KernelUse>& kernels_;
  std::vector<double> seconds_;  // by kernel; 0: none yet
  double round_ = 0;             // seconds that a step takes at the pace of this round
  int quiet_rounds_ = 0;         // in a row
};

}  // namespace

std::vector<KernelUse> kernels_of(const Graph& graph, Backend& backend) {
  std::vector<KernelUse> kernels;
  std::unordered_map<std::string, size_t> known;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Signature signature = signature_of(graph, make_id<NodeId>(n));
    if (signature.op->view) continue;
    Kernel& kernel = backend.kernel(signature);
    auto* const variants = dynamic_cast<TunableKernel*>(&kernel);
    const int used = variants != nullptr ? variants->used() : -1;
    if (variants != nullptr) variants->use(0);
    std::string key = kernel_key(signature, kernel);
    if (variants != nullptr) variants->use(used);  // a step that is priced with it may stand
    const auto [at, fresh] = known.try_emplace(key, kernels.size());
    if (fresh) {
      const double modelled = backend.seconds(signature);
      kernels.push_back({std::move(key), std::move(signature), modelled, 0, variants ? 0 : -1});
    }
    ++kernels[at->second].nodes;
  }
  std::ranges::stable_sort(kernels, std::greater(),
                           [](const KernelUse& use) { return use.modelled * use.nodes; });
  std::vector<KernelUse> with_variants;
  for (const KernelUse& use : kernels) {
    with_variants.push_back(use);
    if (use.variant < 0) continue;
    auto& kernel = dynamic_cast<TunableKernel&>(backend.kernel(use.signature));
    const int used = kernel.used();
    for (int v = 1; v < kernel.variants(); ++v) {
      kernel.use(v);
      with_variants.push_back(
          {kernel_key(use.signature, kernel), use.signature, use.modelled, 0, v});
    }
    kernel.use(used);
  }
  return with_variants;
}

Bytes room_for(const KernelUse& use, const Kernel& kernel) {
  const Need need = need_of(use.signature, kernel);
  return need.read + need.write + need.zeros;
}

namespace {

// The kernels, in order, that fit into the same two rings: one for inputs, the other for results.
std::vector<KernelUse> with_room(const std::vector<KernelUse>& all, Backend& backend, Bytes room) {
  std::vector<KernelUse> kernels;
  Need most;
  for (const KernelUse& use : all) {
    const Need need = need_of(use.signature, backend.kernel(use.signature));
    const Need both = {std::max(most.read, need.read), std::max(most.write, need.write),
                       std::max(most.zeros, need.zeros)};
    if (both.read + both.write + both.zeros > room) continue;
    most = both;
    kernels.push_back(use);
  }
  return kernels;
}

// Puts back the variants that kernels use: timing tries them all.
class AsTheyWere {
 public:
  AsTheyWere(const std::vector<KernelUse>& kernels, Backend& backend) {
    for (const KernelUse& use : kernels) {
      auto* const variants = dynamic_cast<TunableKernel*>(&backend.kernel(use.signature));
      if (variants != nullptr) used_.emplace_back(variants, variants->used());
    }
  }
  AsTheyWere(const AsTheyWere&) = delete;
  AsTheyWere& operator=(const AsTheyWere&) = delete;
  ~AsTheyWere() {
    for (const auto& [kernel, variant] : used_) kernel->use(variant);
  }

 private:
  std::vector<std::pair<TunableKernel*, int>> used_;
};

}  // namespace

CostTable calibrate(const std::vector<KernelUse>& all, Backend& backend,
                    const CalibrateOptions& options) {
  const std::vector<KernelUse> kernels = with_room(all, backend, options.room);
  if (kernels.empty()) return {};
  const AsTheyWere variants(kernels, backend);
  const Clock::time_point start = Clock::now();
  Bench bench(kernels, backend, options.room);
  FastestRuns runs(kernels);
  const auto share_of_time = [&] { return seconds_since(start) / options.seconds; };
  for (int round = 0; round < options.rounds && share_of_time() < 1; ++round) {
    for (size_t k = 0; k < kernels.size() && share_of_time() < 1; ++k) {
      // The first run warms up code and the translation of addresses.
      if (!runs.has(k)) bench.time(kernels[k]);
      runs.add(k, bench.time(kernels[k]));
      if (options.progress) options.progress(std::min(1.0, share_of_time()), runs.measured());
    }
    if (runs.settled()) break;
  }
  return runs.table(options.date);
}

}  // namespace thimble
