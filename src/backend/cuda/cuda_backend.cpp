#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "backend/cuda/cuda_failure.h"
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/owned.h"
#include "backend/cuda/ranks/device_ranks.h"
#include "backend/roofline.h"
#include "base/error.h"

namespace thimble {
namespace {

using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedGraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnedCudnn = Owned<cudnnHandle_t, cudnnDestroy>;
using OwnedCublas = Owned<cublasLtHandle_t, cublasLtDestroy>;

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(Bytes size) : size_(size) {
    if (size.count == 0) return;
    void* allocated = nullptr;
    const cudaError_t status = cudaMalloc(&allocated, static_cast<size_t>(size.count));
    const std::string what = fmt::format("an arena of {}", to_string(size));
    if (status == cudaErrorMemoryAllocation) fail_for_room(what, size);
    check(status, what.c_str());
    base_ = static_cast<std::byte*>(allocated);
  }
  ~DeviceMemory() override { cudaFree(base_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* base() override { return base_; }
  Bytes size() const override { return size_; }

 private:
  Bytes size_;
  std::byte* base_ = nullptr;
};

class PinnedMemory final : public Memory {
 public:
  explicit PinnedMemory(Bytes size) : size_(size) {
    if (size.count == 0) return;
    void* allocated = nullptr;
    const cudaError_t status = cudaMallocHost(&allocated, static_cast<size_t>(size.count));
    user_check(status != cudaErrorMemoryAllocation,
               "the system has no {} of memory that the GPU can read, for batches; give a smaller "
               "--batch or --microbatch, or close other programs",
               to_string(size));
    check(status, "allocating memory for batches");
    base_ = static_cast<std::byte*>(allocated);
  }
  ~PinnedMemory() override { cudaFreeHost(base_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* base() override { return base_; }
  Bytes size() const override { return size_; }

 private:
  Bytes size_;
  std::byte* base_ = nullptr;
};

class CudaCapturedGraph final : public CapturedGraph {
 public:
  // The graph may go when this has returned.
  CudaCapturedGraph(cudaStream_t stream, cudaGraph_t graph) : stream_(stream) {
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph, 0), "making a graph of the step");
    graph_.reset(made);
    check(cudaGraphUpload(graph_.get(), stream_), "uploading the step");
  }

  void run() override { check(cudaGraphLaunch(graph_.get(), stream_), "launching a step"); }

 private:
  cudaStream_t stream_;
  OwnedGraphExec graph_;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaStream_t stream, unsigned flags = cudaEventDisableTiming)
      : stream_(stream) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, flags), "an event");
    event_.reset(made);
  }

  void mark() override { check(cudaEventRecord(event_.get(), stream_), "an event"); }
  void wait() override { check(cudaEventSynchronize(event_.get()), "a step"); }
  // Later work of `stream` begins behind it.
  void hold(cudaStream_t stream) {
    check(cudaStreamWaitEvent(stream, event_.get(), 0), "an event");
  }
  // REQUIRES: both keep the time, and were waited for.
  double seconds_since(const CudaEvent& start) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_.get(), event_.get()), "timing");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaStream_t stream_;
  OwnedEvent event_;
};

class ViewKernel final : public Kernel {
 public:
  ViewKernel() { name = "view"; }
  void run(const KernelArgs&) override {}
};

// The roofline of modelled times, from the card's own figures: half of the peak of f32 arithmetic
// and of memory.
Roofline model_of(const cudaDeviceProp& card, int number) {
  int clock_khz = 0, memory_khz = 0;
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, number);
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, number);
  Roofline model;
  // Some virtual cards keep their clocks to themselves.
  model.flops_per_second = std::max(1e12, 128.0 * card.multiProcessorCount * clock_khz * 1e3);
  model.bytes_per_second = std::max(1e11, memory_khz * 1e3 * card.memoryBusWidth / 8.0);
  model.launch_seconds = 2e-6;
  return model;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const DeviceOptions& options)
      : streams_(static_cast<size_t>(std::clamp(options.streams, 1, kMostStreams))) {
    int cards = 0;
    check(cudaGetDeviceCount(&cards), "looking for GPUs");
    const int number = card_of_rank(cards);
    const cudaError_t chosen = cudaSetDevice(number);
    if (chosen == cudaErrorMemoryAllocation) fail_for_room("CUDA's own context", kContext);
    check(chosen, "choosing the GPU");
    cudaDeviceProp card{};
    check(cudaGetDeviceProperties(&card, number), "asking what GPU this is");
    user_check(10 * card.major + card.minor >= kOldest,
               "the GPU here, {}, has compute capability {}.{}; {}.{} is the least that this build "
               "knows: use --device cpu",
               card.name, card.major, card.minor, kOldest / 10, kOldest % 10);
    machine_ = fmt::format("{}{}", card.name, options.tf32 ? "" : ", full f32");
    model_ = tensor_model_ = model_of(card, number);
    tensor_model_.flops_per_second *= kTensorCores;
    device_.multiprocessors = card.multiProcessorCount;
    device_.architecture = 10 * card.major + card.minor;
    device_.tf32 = options.tf32;
    for (OwnedStream& stream : streams_) {
      cudaStream_t made = nullptr;
      check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "a stream");
      stream.reset(made);
    }
    device_.stream = streams_[0].get();
    for (auto& event : timer_) {
      event = std::make_unique<CudaEvent>(device_.stream, cudaEventDefault);
    }
    check(cudnnCreate(&device_.cudnn), "starting");
    cudnn_.reset(device_.cudnn);
    check(cudnnSetStream(device_.cudnn, device_.stream), "a stream");
    check(cublasLtCreate(&device_.cublas), "starting");
    cublas_.reset(device_.cublas);
  }

  void join(Communicator& ranks) override {
    ranks_ = make_device_ranks(ranks, device_);
    device_.ranks = ranks_.get();
    host_ranks_ = make_host_ranks(ranks, ranks_->name());
    Backend::join(*host_ranks_);
  }

  std::string_view name() const override { return "cuda"; }
  std::string machine() const override { return machine_; }
  bool runs() const override { return true; }
  bool has_device_memory() const override { return true; }

  Kernel& kernel(const Signature& signature) override {
    std::unique_ptr<Kernel>& slot = kernels_[signature];
    if (slot != nullptr) return *slot;
    if (signature.op->view) slot = std::make_unique<ViewKernel>();
    for (const CudaKernel* candidate : all_cuda_kernels()) {
      if (slot == nullptr && candidate->op == signature.op->name) {
        slot = candidate->make(signature, device_);
      }
    }
    user_check(slot != nullptr, "[{}] has no kernel for {} on the GPU; use --device cpu",
               signature.op->name, to_string(signature.outputs[0]));
    return *slot;
  }

  void keep_kernels(const std::unordered_set<Signature, SignatureHash>& used) override {
    std::erase_if(kernels_, [&](const auto& kernel) { return !used.contains(kernel.first); });
  }

  double seconds(const Signature& signature) const override {
    const DType dtype = signature.outputs[0].dtype;
    const bool tensor_cores = dtype != DType::f32 || device_.tf32;
    return (tensor_cores ? tensor_model_ : model_).seconds(signature);
  }

  std::unique_ptr<Memory> allocate(Bytes size) override {
    return std::make_unique<DeviceMemory>(size);
  }
  // Padding that cudaMalloc adds to an arena counts as beside it.
  std::optional<Bytes> in_use_beside(Bytes arena) const override {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for its free memory");
    return Bytes(static_cast<int64_t>(total - free)) - arena;
  }
  std::optional<Bytes> free_memory() const override {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for its free memory");
    return Bytes(static_cast<int64_t>(free));
  }
  std::unique_ptr<Memory> allocate_host(Bytes size) override {
    return std::make_unique<PinnedMemory>(size);
  }
  void copy_in(std::byte* to, std::span<const std::byte> from) override {
    check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, device_.stream),
          "copying to the GPU");
    synchronise();
  }
  void copy_out(std::span<std::byte> to, const std::byte* from) override {
    check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, device_.stream),
          "copying from the GPU");
    synchronise();
  }
  void queue_copy_in(std::byte* to, std::span<const std::byte> from) override {
    check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, device_.stream),
          "copying to the GPU");
  }
  void queue_copy_out(std::span<std::byte> to, const std::byte* from) override {
    check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, device_.stream),
          "copying from the GPU");
  }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<CudaEvent>(device_.stream);
  }
  double seconds_for(const std::function<void()>& work) override {
    timer_[0]->mark();
    work();
    timer_[1]->mark();
    timer_[1]->wait();
    return timer_[1]->seconds_since(*timer_[0]);
  }
  void synchronise() override { check(cudaStreamSynchronize(device_.stream), "a step"); }

  int streams() const override { return static_cast<int>(streams_.size()); }

  std::unique_ptr<CapturedGraph> capture(std::span<const Launch> launches) override {
    const cudaStream_t first = streams_[0].get();
    check(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal), "recording");
    cudaGraph_t captured = nullptr;
    try {
      launch_all(launches);
    } catch (...) {
      device_.stream = first;
      device_.stream_number = 0;
      cudnnSetStream(device_.cudnn, first);
      cudaStreamEndCapture(first, &captured);
      const OwnedGraph dropped(captured);
      cudaGetLastError();  // what is thrown says what went wrong
      throw;
    }
    check(cudaStreamEndCapture(first, &captured), "recording");
    const OwnedGraph graph(captured);
    return std::make_unique<CudaCapturedGraph>(first, graph.get());
  }

 private:
  static constexpr int kOldest = 75;
  static constexpr Bytes kContext{int64_t{500} << 20};  // CUDA's own, about
  // How much faster products are on tensor cores, of TF32 or 16-bit numbers, in kernels as they
  // are.
  static constexpr double kTensorCores = 4;

  void use_stream(int number) {
    device_.stream = streams_[static_cast<size_t>(number)].get();
    device_.stream_number = number;
    check(cudnnSetStream(device_.cudnn, device_.stream), "a stream");
  }

  // Events tie the streams together: each of the others begins behind the first's beginning, and
  // the first ends behind the others' ends.
  void launch_all(std::span<const Launch> launches) {
    std::vector<std::unique_ptr<CudaEvent>> over(launches.size());
    for (const Launch& launch : launches) {
      for (const int other : launch.waits_for) {
        const auto at = static_cast<size_t>(other);
        const auto stream = static_cast<size_t>(launches[at].stream);
        if (!over[at]) over[at] = std::make_unique<CudaEvent>(streams_[stream].get());
      }
    }
    std::vector<bool> joined(streams_.size(), false);
    joined[0] = true;
    CudaEvent begin(streams_[0].get());
    begin.mark();
    for (size_t i = 0; i < launches.size(); ++i) {
      const auto stream = static_cast<size_t>(launches[i].stream);
      if (!joined[stream]) begin.hold(streams_[stream].get());
      joined[stream] = true;
      use_stream(launches[i].stream);
      for (const int other : launches[i].waits_for) {
        over[static_cast<size_t>(other)]->hold(device_.stream);
      }
      launches[i].make();
      if (over[i]) over[i]->mark();
    }
    use_stream(0);
    for (size_t s = 1; s < streams_.size(); ++s) {
      if (!joined[s]) continue;
      CudaEvent end(streams_[s].get());
      end.mark();
      end.hold(streams_[0].get());
    }
  }

  // In the order in which they need each other: each goes before what it uses.
  std::vector<OwnedStream> streams_;  // all but the first for recordings only
  OwnedCudnn cudnn_;
  OwnedCublas cublas_;
  CudaDevice device_;
  std::unique_ptr<Communicator> ranks_, host_ranks_;  // null: this process is alone
  std::array<std::unique_ptr<CudaEvent>, 2> timer_;
  std::string machine_;
  Roofline model_, tensor_model_;
  std::unordered_map<Signature, std::unique_ptr<Kernel>, SignatureHash> kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "looking for a GPU");
  return std::make_unique<CudaBackend>(options);
}

}  // namespace thimble
