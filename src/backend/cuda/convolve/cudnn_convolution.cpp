#include "backend/cuda/convolve/cudnn_convolution.h"

#include <algorithm>
#include <array>

#include "backend/cuda/convolve/depthwise.h"
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.h"
#include "backend/tunable_kernel.h"
#include "base/error.h"

namespace thimble {
namespace {

// Names of the tensors in a call.
constexpr int64_t kX = 1, kW = 2, kY = 3;

Descriptor make(cudnnBackendDescriptorType_t type) {
  void* made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "a descriptor");
  return Descriptor(made);
}

template <class T>
void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         const T* values, size_t count) {
  check(cudnnBackendSetAttribute(d.get(), name, type, static_cast<int64_t>(count), values),
        "an attribute");
}
template <class T>
void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         const T& value) {
  set(d, name, type, &value, 1);
}
void set(const Descriptor& d, cudnnBackendAttributeName_t name, const Descriptor& part) {
  void* const raw = part.get();
  set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
}
template <size_t kCount>
void set(const Descriptor& d, cudnnBackendAttributeName_t name,
         const std::array<int64_t, kCount>& values) {
  set(d, name, CUDNN_TYPE_INT64, values.data(), kCount);
}
void finish(const Descriptor& d, const char* what) { check(cudnnBackendFinalize(d.get()), what); }

cudnnDataType_t data_type(DType dtype) {
  return dtype == DType::f16    ? CUDNN_DATA_HALF
         : dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}

// Ours is [A,H,W,B], cuDNN's order of axes [A,B,H,W]: strides say how it lies.
Descriptor tensor(int64_t id, const Shape& shape, DType dtype) {
  const int64_t a = shape[0], h = shape[1], w = shape[2], b = shape[3];
  Descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(dtype));
  set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, std::array{a, b, h, w});
  set(d, CUDNN_ATTR_TENSOR_STRIDES, std::array{h * w * b, int64_t{1}, w * b, b});
  set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{kArenaAlignment});
  finish(d, "a tensor");
  return d;
}

Descriptor convolution(const ConvShape& shape) {
  Descriptor d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
  set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pad);
  set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pad);
  set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilation);
  set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.stride);
  finish(d, "a convolution");
  return d;
}

struct PassAttributes {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

PassAttributes attributes_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvPass::data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

// Engine configurations that cuDNN suggests for the graph, best guess first.
std::vector<Descriptor> suggestions(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  constexpr int64_t kMost = 32;
  const Descriptor heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristic.get()) != CUDNN_STATUS_SUCCESS) return {};
  std::vector<Descriptor> configs;
  std::vector<void*> raw;
  for (int64_t i = 0; i < kMost; ++i) {
    configs.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configs.back().get());
  }
  int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &count,
                               raw.data()) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  configs.resize(static_cast<size_t>(std::min(count, kMost)));
  return configs;
}

Descriptor engine_of(void* config) {
  Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  void* raw = engine.get();
  int64_t count = 0;
  check(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &raw),
        "an engine");
  return engine;
}

template <class Note>
bool has_note(const Descriptor& engine, cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type, std::initializer_list<Note> any_of) {
  std::array<Note, 16> notes{};
  int64_t count = 0;
  check(cudnnBackendGetAttribute(engine.get(), name, type, std::ssize(notes), &count, notes.data()),
        "an engine's notes");
  const auto end = notes.begin() + std::min<int64_t>(count, std::ssize(notes));
  return std::any_of(notes.begin(), end, [&](Note note) {
    return std::find(any_of.begin(), any_of.end(), note) != any_of.end();
  });
}

// Scratch that a kernel may ask for: little beside what it works on, so that the choice of an
// engine hardly shows in an arena. It depends on the signature alone: a plan must not change the
// bits.
Bytes scratch_limit(const ConvShape& shape) {
  const int64_t elements = shape.x.elements() + shape.w.elements() + shape.y.elements();
  return Bytes(elements * size_of(shape.dtype) / 4);
}

class ConvKernel final : public TunableKernel {
 public:
  ConvKernel(CudaDevice& device, ConvPass pass, const ConvShape& shape, bool add)
      : pass_(pass), convolution_(device, pass, shape, add) {
    std::vector<ConvEngine> all = convolution_.engines();
    user_check(!all.empty(), "cuDNN has no deterministic engine for a convolution {} by {}",
               to_string(shape.x), to_string(shape.w));
    const Bytes limit = scratch_limit(shape);
    for (ConvEngine& engine : all) {
      if (engine.scratch <= limit && engines_.size() < kMost) engines_.push_back(std::move(engine));
    }
    if (engines_.empty()) {
      engines_.push_back(std::move(*std::ranges::min_element(all, {}, &ConvEngine::scratch)));
    }
    use(0);
  }

  int variants() const override { return static_cast<int>(engines_.size()); }
  int used() const override { return static_cast<int>(used_); }
  void use(int variant) override {
    used_ = static_cast<size_t>(variant);
    name = fmt::format("cudnn engine {}, guess {}", engines_[used_].number, variant + 1);
    workspace = engines_[used_].scratch;
  }

  void run(const KernelArgs& args) override {
    void* a = args.inputs[0].data;
    void* b = args.inputs[1].data;
    void* out = args.outputs[0].data;
    switch (pass_) {
      case ConvPass::forward:  // x, w -> y
        return convolution_.run(engines_[used_], a, b, out, args.workspace);
      case ConvPass::data:  // w, dy -> dx
        return convolution_.run(engines_[used_], out, a, b, args.workspace);
      case ConvPass::weights:  // x, dy -> dw
        return convolution_.run(engines_[used_], a, out, b, args.workspace);
    }
  }

 private:
  static constexpr size_t kMost = 8;

  const ConvPass pass_;
  CudnnConvolution convolution_;
  std::vector<ConvEngine> engines_;
  size_t used_ = 0;
};

}  // namespace

CudnnConvolution::CudnnConvolution(CudaDevice& device, ConvPass pass, const ConvShape& shape,
                                   bool add)
    : device_(device), dtype_(shape.dtype) {
  const PassAttributes names = attributes_of(pass);
  Descriptor x = tensor(kX, shape.x, dtype_), w = tensor(kW, shape.w, dtype_),
             y = tensor(kY, shape.y, dtype_), geometry = convolution(shape);
  Descriptor operation = make(names.type);
  set(operation, names.x, x);
  set(operation, names.w, w);
  set(operation, names.y, y);
  set(operation, names.convolution, geometry);
  set(operation, names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
  set(operation, names.beta, CUDNN_TYPE_FLOAT, add ? 1.0f : 0.0f);
  finish(operation, "an operation");
  graph_ = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph_, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  set(graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, device_.cudnn);
  finish(graph_, "a graph");
  for (Descriptor* part : {&x, &w, &y, &geometry, &operation}) parts_.push_back(std::move(*part));
}

bool CudnnConvolution::qualifies(void* config) const {
  const Descriptor engine = engine_of(config);
  const auto noted = [&](std::initializer_list<cudnnBackendNumericalNote_t> notes) {
    return has_note(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes);
  };
  if (noted({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
             CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_FFT,
             CUDNN_NUMERICAL_NOTE_WINOGRAD})) {
    return false;
  }
  if (dtype_ == DType::f32 && !device_.tf32 && noted({CUDNN_NUMERICAL_NOTE_TENSOR_CORE})) {
    return false;
  }
  return !has_note(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                   {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION});
}

std::vector<ConvEngine> CudnnConvolution::engines() const {
  std::vector<ConvEngine> result;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : suggestions(graph_, mode)) {
      if (!qualifies(config.get())) continue;
      ConvEngine engine;
      engine.plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      set(engine.plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, device_.cudnn);
      set(engine.plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (cudnnBackendFinalize(engine.plan.get()) != CUDNN_STATUS_SUCCESS) continue;
      int64_t scratch = 0, count = 0;
      check(cudnnBackendGetAttribute(engine.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &scratch),
            "an engine's scratch");
      engine.scratch = Bytes(scratch);
      check(cudnnBackendGetAttribute(engine_of(config.get()).get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                     CUDNN_TYPE_INT64, 1, &count, &engine.number),
            "an engine's number");
      result.push_back(std::move(engine));
    }
  }
  return result;
}

void CudnnConvolution::run(const ConvEngine& engine, void* x, void* w, void* y,
                           std::byte* scratch) const {
  const std::array<int64_t, 3> ids = {kX, kW, kY};
  const std::array<void*, 3> data = {x, w, y};
  void* const room = scratch;
  const Descriptor call = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  set(call, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  set(call, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data.data(), data.size());
  set(call, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, room);
  finish(call, "a call");
  check(cudnnBackendExecute(device_.cudnn, engine.plan.get(), call.get()), "a convolution");
}

std::unique_ptr<Kernel> make_convolution(CudaDevice& device, ConvPass pass, const Signature& s) {
  ConvShape shape;
  shape.dtype = s.outputs[0].dtype;
  const bool alike = s.inputs[0].dtype == shape.dtype && s.inputs[1].dtype == shape.dtype;
  if (!on_device(shape.dtype) || !alike) return nullptr;
  const auto both = [&](const char* name, const char* across, int64_t usual) {
    const int64_t down = s.attrs.integer(name, usual);
    return std::array{down, s.attrs.integer(across, down)};
  };
  shape.stride = both("stride", "stride_w", 1);
  shape.pad = both("pad", "pad_w", 0);
  shape.dilation = both("dilation", "dilation_w", 1);
  const Shape &a = s.inputs[0].shape, &b = s.inputs[1].shape, &out = s.outputs[0].shape;
  switch (pass) {
    case ConvPass::forward:
      shape.x = a, shape.w = b, shape.y = out;
      break;
    case ConvPass::data:
      shape.w = a, shape.y = b, shape.x = out;
      break;
    case ConvPass::weights:
      shape.x = a, shape.y = b, shape.w = out;
      break;
  }
  if (std::unique_ptr<Kernel> own = make_depthwise(device, pass, shape)) return own;
  return std::make_unique<ConvKernel>(device, pass, shape, s.accumulate != 0);
}

}  // namespace thimble
