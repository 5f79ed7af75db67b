// Which engines cuDNN offers for the convolutions of a model: scratch and time of each, in the
// order of its own guess. For choosing how kernels are chosen. usage: bench_cuda_engines MODEL
// BATCH PRECISION
#include <fmt/format.h>

#include <set>

#include "backend/cuda/convolve/cudnn_convolution.h"
#include "pipeline/pipeline.h"

namespace thimble {
namespace {

double microseconds(const CudnnConvolution& convolution, const ConvEngine& engine,
                    cudaStream_t stream, std::byte* x, std::byte* w, std::byte* y,
                    std::byte* scratch) {
  constexpr int kRuns = 20;
  convolution.run(engine, x, w, y, scratch);
  check(cudaStreamSynchronize(stream), "warming up");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < kRuns; ++i) convolution.run(engine, x, w, y, scratch);
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "graph");
  cudaEvent_t start = nullptr, end = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  check(cudaGraphLaunch(executable, stream), "launch");
  cudaEventRecord(start, stream);
  check(cudaGraphLaunch(executable, stream), "launch");
  cudaEventRecord(end, stream);
  check(cudaStreamSynchronize(stream), "timing");
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, start, end);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  return 1e3 * static_cast<double>(milliseconds) / kRuns;
}

int run(const std::string& model, int64_t batch, const std::string& precision) {
  CudaDevice device;
  check(cudaStreamCreate(&device.stream), "stream");
  check(cudnnCreate(&device.cudnn), "cudnn");
  check(cudnnSetStream(device.cudnn, device.stream), "stream");
  ModelOptions options = {.name = model, .batch = batch};
  options.storage = parse_dtype(precision);
  complete_model(options, true);
  const TrainingGraph training = make_training_graph(options, parse_optimizer("sgd"));
  const Graph& graph = training.model.graph;
  std::byte* memory = nullptr;
  const int64_t room = int64_t{1} << 30;
  check(cudaMalloc(&memory, 4 * room), "memory");
  check(cudaMemset(memory, 0x11, 4 * room), "memory");
  std::set<std::string> seen;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature s = signature_of(graph, make_id<NodeId>(n));
    if (!s.op->name.starts_with("conv2d")) continue;
    ConvShape shape;
    shape.dtype = s.outputs[0].dtype;
    shape.stride = s.attrs.integer("stride", 1);
    shape.pad = s.attrs.integer("pad", 0);
    const Shape &a = s.inputs[0].shape, &b = s.inputs[1].shape, &out = s.outputs[0].shape;
    ConvPass pass = ConvPass::forward;
    shape.x = a, shape.w = b, shape.y = out;
    if (s.op->name == "conv2d_backward_data") {
      pass = ConvPass::data, shape.w = a, shape.y = b, shape.x = out;
    } else if (s.op->name == "conv2d_backward_weights") {
      pass = ConvPass::weights, shape.y = b, shape.w = out;
    }
    const std::string title =
        fmt::format("{} {} {} s{} {}{}", s.op->name, to_string(shape.x), to_string(shape.w),
                    shape.stride, name_of(shape.dtype), s.accumulate != 0 ? " +=" : "");
    if (!seen.insert(title).second) continue;
    const CudnnConvolution convolution(device, pass, shape, s.accumulate != 0);
    fmt::print("{} (operands {} KB):", title,
               (shape.x.elements() + shape.w.elements() + shape.y.elements()) *
                   size_of(shape.dtype) / 1000);
    for (const ConvEngine& engine : convolution.engines()) {
      if (engine.scratch > Bytes(room)) continue;
      fmt::print(" {}:{}KB:{:.1f}us", engine.number, engine.scratch.count / 1000,
                 microseconds(convolution, engine, device.stream, memory, memory + room,
                              memory + 2 * room, memory + 3 * room));
    }
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return thimble::run(argv[1], std::stoll(argv[2]), argv[3]);
}
