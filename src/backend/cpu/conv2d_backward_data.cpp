// conv2d_backward_data, in one of two ways.
//
// Stride 1: a forward convolution of dy with the weights turned by 180 degrees, inputs and outputs
// exchanged. oneDNN's forward kernel is 1.6 times as fast as its backward one, and can add.
// Other strides: the backward primitive; to add, a few images at a time go through the workspace.
#include <cstring>

#include "backend/cpu/convolution.h"
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

// Offsets of a blocked oneDNN layout. They add up over the axes: place(i, j) = i's + j's.
std::vector<int64_t> offsets_along(const dnnl::memory::desc& desc, int axis) {
  const dnnl_memory_desc_t& d = desc.data;
  const dnnl_blocking_desc_t& blocks = d.format_desc.blocking;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < d.dims[axis]; ++i) {
    int64_t rest = i, place = 0, inner = 1;
    for (int b = blocks.inner_nblks - 1; b >= 0; --b) {
      if (blocks.inner_idxs[b] == axis) {
        place += rest % blocks.inner_blks[b] * inner;
        rest /= blocks.inner_blks[b];
      }
      inner *= blocks.inner_blks[b];
    }
    offsets.push_back(place + rest * blocks.strides[axis]);
  }
  return offsets;
}

class TurnedForward final : public Kernel {
 public:
  TurnedForward(const Convolution& c, bool add) : c_(c) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    Convolution turned = c;
    std::swap(turned.in_c, turned.out_c);
    const dnnl::memory::dims pads = {c.kernel_h - 1 - c.pad, c.kernel_w - 1 - c.pad};
    const auto pd = pick_implementation([&] {
      return dnnl::convolution_forward::primitive_desc({dnnl::prop_kind::forward_training,
                                                        dnnl::algorithm::convolution_direct,
                                                        c.y(c.batch),
                                                        turned.any_weights(),
                                                        c.x(c.batch),
                                                        {1, 1},
                                                        pads,
                                                        pads},
                                                       dnnl_attributes(add), engine);
    });
    const dnnl::memory::desc layout = pd.weights_desc();
    const int first = c.groups == 1 ? 0 : 1;
    if (layout.data.format_kind != dnnl_blocked || layout.data.offset0 != 0) {
      throw dnnl::error(dnnl_unimplemented, "weights in an unknown layout");
    }
    group_at_ = first == 1 ? offsets_along(layout, 0) : std::vector<int64_t>{0};
    in_at_ = offsets_along(layout, first);
    out_at_ = offsets_along(layout, first + 1);
    h_at_ = offsets_along(layout, first + 2);
    w_at_ = offsets_along(layout, first + 3);
    in_sixteens_ = in_at_.size() % 16 == 0;
    for (size_t i = 0; i < in_at_.size(); ++i) {
      if (i % 16 != 0 && in_at_[i] != in_at_[i - 1] + 1) in_sixteens_ = false;
    }
    packed_bytes_ = layout.get_size();
    padded_ = packed_bytes_ != c.weight_count() * sizeof(float);

    WorkspaceParts parts;
    packed_at_ = parts.take(packed_bytes_);
    scratch_at_ = parts.take(pd.scratchpad_desc().get_size());
    convolve_ = DnnlCall(engine, dnnl::convolution_forward(pd),
                         {{DNNL_ARG_SRC, pd.src_desc()},
                          {DNNL_ARG_WEIGHTS, layout},
                          {DNNL_ARG_DST, pd.dst_desc()},
                          {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
    name = std::string("onednn turned forward ") + pd.impl_info_str();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    auto* packed = reinterpret_cast<float*>(args.workspace + packed_at_);
    pack(args.inputs[0].as<const float>(), packed);
    convolve_.run(
        {args.inputs[1].data, packed, args.outputs[0].data, args.workspace + scratch_at_});
  }

 private:
  void pack(const float* w, float* packed) const {
    if (padded_) std::memset(packed, 0, packed_bytes_);
    const int64_t in = static_cast<int64_t>(in_at_.size()), out = c_.out_c / c_.groups;
    const Parts parts(c_.out_c, c_.kernel_h * c_.kernel_w * in);
    parts.run([&](int, int64_t begin, int64_t end) {
      const float* from = w + begin * c_.kernel_h * c_.kernel_w * in;
      for (int64_t o = begin; o < end; ++o) {
        float* to_out = packed + group_at_[static_cast<size_t>(o / out)] +
                        out_at_[static_cast<size_t>(o % out)];
        for (int64_t h = c_.kernel_h - 1; h >= 0; --h) {
          for (int64_t v = c_.kernel_w - 1; v >= 0; --v, from += in) {
            float* to = to_out + h_at_[static_cast<size_t>(h)] + w_at_[static_cast<size_t>(v)];
            copy_row(from, to);
          }
        }
      }
    });
  }

  void copy_row(const float* from, float* to) const {
    const int64_t in = static_cast<int64_t>(in_at_.size());
    if (in_sixteens_) {
      for (int64_t i = 0; i < in; i += 16) {
        std::memcpy(to + in_at_[static_cast<size_t>(i)], from + i, 16 * sizeof(float));
      }
    } else {
      for (int64_t i = 0; i < in; ++i) to[in_at_[static_cast<size_t>(i)]] = from[i];
    }
  }

  const Convolution c_;
  DnnlCall convolve_;
  std::vector<int64_t> group_at_, in_at_, out_at_, h_at_, w_at_;
  bool in_sixteens_ = false;  // 16 neighbours of the input channels are neighbours when packed
  size_t packed_bytes_ = 0;
  bool padded_ = false;
  int64_t packed_at_ = 0, scratch_at_ = 0;
};

// The largest divisor of `batch` whose images fit a workspace of about a megabyte.
int64_t images_at_once(const Convolution& c) {
  const int64_t image = c.in_h * c.in_w * c.in_c * static_cast<int64_t>(sizeof(float));
  int64_t images = std::clamp<int64_t>((1 << 20) / image, 1, c.batch);
  while (c.batch % images != 0) --images;
  return images;
}

class BackwardData final : public Kernel {
 public:
  BackwardData(const Convolution& c, bool add)
      : c_(c), add_(add), images_(add ? images_at_once(c) : c.batch) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto hint = forward_hint(engine, c, images_);
    const auto pd = pick_implementation([&] {
      return dnnl::convolution_backward_data::primitive_desc(
          {dnnl::algorithm::convolution_direct, c.x(images_), c.any_weights(), c.y(images_),
           c.strides(), c.pads(), c.pads()},
          dnnl_attributes(false), engine, hint);
    });
    WorkspaceParts parts;
    if (pd.weights_desc() != c.weights()) {
      pack_ = dnnl_reorder(engine, c.weights(), pd.weights_desc(), false);
      packed_at_ = parts.take(pd.weights_desc().get_size());
    }
    if (add) {
      add_images_ = dnnl_reorder(engine, c.x(images_), c.x(images_), true);
      images_at_ = parts.take(c.x(images_).get_size());
    }
    scratch_at_ = parts.take(pd.scratchpad_desc().get_size());
    convolve_ = DnnlCall(engine, dnnl::convolution_backward_data(pd),
                         {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                          {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                          {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
                          {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
    name = std::string("onednn ") + pd.impl_info_str();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    const void* weights = args.inputs[0].data;
    if (pack_) {
      std::byte* packed = args.workspace + packed_at_;
      pack_.run({weights, packed});
      weights = packed;
    }
    std::byte* scratch = args.workspace + scratch_at_;
    const float* dy = args.inputs[1].as<const float>();
    float* dx = args.outputs[0].as<float>();
    for (int64_t n = 0; n < c_.batch; n += images_) {
      void* images = add_ ? static_cast<void*>(args.workspace + images_at_) : dx;
      convolve_.run({dy, weights, images, scratch});
      if (add_) add_images_.run({images, dx});
      dy += images_ * c_.out_h * c_.out_w * c_.out_c;
      dx += images_ * c_.in_h * c_.in_w * c_.in_c;
    }
  }

 private:
  const Convolution c_;
  const bool add_;
  const int64_t images_;
  DnnlCall pack_, convolve_, add_images_;
  int64_t packed_at_ = 0, images_at_ = 0, scratch_at_ = 0;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!all_f32(s)) return nullptr;
  const Convolution c = convolution_of(s.outputs[0], s.inputs[0], s.inputs[1], s.attrs);
  const bool add = s.accumulate != 0;
  std::unique_ptr<Kernel> kernel;
  if (c.stride == 1 && c.pad < c.kernel_h && c.pad < c.kernel_w) {
    kernel = make_if_supported<TurnedForward>(c, add);
  }
  if (kernel == nullptr) kernel = make_if_supported<BackwardData>(c, add);
  return kernel;
}

}  // namespace

extern const CpuKernel cpu_conv2d_backward_data;
const CpuKernel cpu_conv2d_backward_data{"conv2d_backward_data", make};

}  // namespace thimble
