// Normalisation with statistics of each sample's channel groups, behind group_norm and layer_norm
// (rows are samples of one group and one place).
//
//   x [batch, places, channels], channels = groups * per_group; mean, rstd [batch, groups]
#pragma once

#include "backend/cuda/reduce/column_sums.cuh"
#include "backend/cuda/reduce/row_group.cuh"

namespace thimble {

struct GroupShape {
  int64_t batch;
  int places, channels, groups;
  bool relu;  // fused after the affine map

  __host__ __device__ int per_group() const { return channels / groups; }
  __host__ __device__ int group_size() const { return places * per_group(); }
  __host__ __device__ int64_t count() const { return batch * groups; }
};

// Of group_norm: x [N, H, W, C].
inline GroupShape image_groups(const Signature& s) {
  const Shape& x = s.inputs[0].shape;
  return {x[0], static_cast<int>(x[1] * x[2]), static_cast<int>(x[3]),
          static_cast<int>(s.attrs.integer("groups")), s.attrs.text("act", "none") == "relu"};
}

// Of layer_norm: every row is a sample of one group.
inline GroupShape row_groups(const Signature& s) {
  const Shape& x = s.inputs[0].shape;
  return {x.product(0, x.rank() - 1), 1, static_cast<int>(x.back()), 1, false};
}

// One group of a sample: where its elements are.
struct GroupWalk {
  int64_t first;
  int channel, per_group, channels;

  __device__ GroupWalk(const GroupShape& g, int64_t k)
      : channel(static_cast<int>(k % g.groups) * g.per_group()),
        per_group(g.per_group()),
        channels(g.channels) {
    first = k / g.groups * g.places * g.channels + channel;
  }
  // Element i of the group: its channel, and its place in the tensor.
  __device__ int64_t at(int i, int& c) const {
    const int place = i / per_group, own = i - place * per_group;
    c = channel + own;
    return first + int64_t{place} * channels + own;
  }
};

struct Affine {
  const float *gamma, *beta;  // beta is null in gradients without relu
  __device__ float operator()(float normalized, int c) const {
    return __fmaf_rn(normalized, gamma[c], beta[c]);
  }
};

// y may be x: a group is read by all before any of it is written.
template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    normalize_groups(const T* x, T* y, float* mean, float* rstd, GroupShape g, Affine affine,
                     float epsilon) {
  const RowGroup<kThreads> group;
  const int size = g.group_size();
  for (int64_t k = group.first_row; k < g.count(); k += group.rows_apart) {
    const GroupWalk walk(g, k);
    int c;
    float own = 0;
    for (int i = group.lane; i < size; i += kThreads) own += widen(x[walk.at(i, c)]);
    const float center = static_cast<float>(group.fold(static_cast<double>(own), SumFold{}) / size);
    own = 0;
    for (int i = group.lane; i < size; i += kThreads) {
      const float deviation = widen(x[walk.at(i, c)]) - center;
      own += deviation * deviation;
    }
    const double variance = group.fold(static_cast<double>(own), SumFold{}) / size;
    const float inverse = static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)));
    for (int i = group.lane; i < size; i += kThreads) {
      const int64_t at = walk.at(i, c);
      const float z = affine((widen(x[at]) - center) * inverse, c);
      y[at] = narrow<T>(g.relu && z <= 0 ? 0 : z);
    }
    if (group.lane == 0) {
      mean[k] = center;
      rstd[k] = inverse;
    }
  }
}

// The gradient before the affine map and the relu, where x is normalised to `normalized`.
__device__ inline float masked(const GroupShape& g, const Affine& affine, float normalized, int c,
                               float dy) {
  return g.relu && affine(normalized, c) <= 0 ? 0 : dy;
}

// dx may be dy: a group is read by all before any of it is written.
template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    group_gradients(const T* x, const T* dy, const float* mean, const float* rstd, T* dx,
                    GroupShape g, Affine affine, bool add) {
  const RowGroup<kThreads> group;
  const int size = g.group_size();
  for (int64_t k = group.first_row; k < g.count(); k += group.rows_apart) {
    const GroupWalk walk(g, k);
    const float center = mean[k], inverse = rstd[k];
    int c;
    float sum = 0, sum_normalized = 0;
    for (int i = group.lane; i < size; i += kThreads) {
      const int64_t at = walk.at(i, c);
      const float normalized = (widen(x[at]) - center) * inverse;
      const float d = masked(g, affine, normalized, c, widen(dy[at])) * affine.gamma[c];
      sum += d;
      sum_normalized += d * normalized;
    }
    const float mean_d = static_cast<float>(group.fold(static_cast<double>(sum), SumFold{}) / size);
    const float mean_d_normalized =
        static_cast<float>(group.fold(static_cast<double>(sum_normalized), SumFold{}) / size);
    for (int i = group.lane; i < size; i += kThreads) {
      const int64_t at = walk.at(i, c);
      const float normalized = (widen(x[at]) - center) * inverse;
      const float d = masked(g, affine, normalized, c, widen(dy[at])) * affine.gamma[c];
      store(dx + at, inverse * (d - mean_d - normalized * mean_d_normalized), add);
    }
  }
}

// Takes the sums of 2 * channels columns: dgamma's, and then dbeta's.
struct WriteScales {
  float *dgamma, *dbeta;
  bool add_dgamma, add_dbeta;
  int channels;
  template <class Real>
  __device__ void operator()(int column, Real sum) const {
    if (column < channels) {
      store(dgamma + column, static_cast<float>(sum), add_dgamma);
    } else {
      store(dbeta + column - channels, static_cast<float>(sum), add_dbeta);
    }
  }
};

template <class T, int kWide>
__global__ void __launch_bounds__(kColumnThreads)
    scale_gradients(const T* x, const T* dy, const float* mean, const float* rstd, GroupShape g,
                    Affine affine, ColumnTiles tiles, float* partial, WriteScales write) {
  const TilePlace<kWide> place(tiles);
  int group[kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) group[e] = (place.column + e) / g.per_group();
  float sum[2][kWide] = {};
  const T* const sources[2] = {x, dy};
  for_each_row<T, kWide, 2>(tiles, place, sources, [&](int row, const Vec<T, kWide>(&in)[2]) {
    const int64_t first = int64_t{row / g.places} * g.groups;
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const int64_t k = first + group[e];
      const float normalized = (widen(in[0].at[e]) - mean[k]) * rstd[k];
      const float d = masked(g, affine, normalized, place.column + e, widen(in[1].at[e]));
      sum[0][e] += d * normalized;
      sum[1][e] += d;
    }
  });
  fold_block_columns(tiles, sum, SumFold{}, [&](int k, int column, float all) {
    if (partial != nullptr) {
      partial[partial_at(tiles, 2, blockIdx.x, k, column)] = all;
    } else {
      write(k * tiles.columns + column, all);
    }
  });
}

// (x, gamma, beta) -> (y, mean, rstd)
inline std::unique_ptr<Kernel> make_group_normalize(const Signature& s, CudaDevice& device,
                                                    const GroupShape& g) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return own_kernel([&device, g](const KernelArgs& args) {
    if (args.outputs[0].elements() == 0) return;
    const Affine affine = {args.inputs[1].as<float>(), args.inputs[2].as<float>()};
    const float epsilon = static_cast<float>(args.attrs->real("epsilon", 1e-5));
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_row_group(g.group_size(), [&](auto threads) {
        normalize_groups<T, threads.value>
            <<<row_blocks(g.count(), g.group_size(), device), kRowThreads, 0, device.stream>>>(
                args.inputs[0].as<T>(), args.outputs[0].as<T>(), args.outputs[1].as<float>(),
                args.outputs[2].as<float>(), g, affine, epsilon);
      });
    });
    check_launch("a normalisation");
  });
}

// (x, mean, rstd, gamma, [beta,] dy) -> (dx, dgamma, dbeta). The scales' gradients come first: dx
// may overwrite dy.
inline std::unique_ptr<Kernel> make_group_normalize_backward(const Signature& s, CudaDevice& device,
                                                             const GroupShape& g) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const ColumnTiles tiles = sum_tiles(g.batch * g.places, g.channels, x.dtype, 2, device);
  const auto launch = [&device, g, tiles](const KernelArgs& args) {
    const bool has_beta = args.inputs.size() == 6;
    const Affine affine = {args.inputs[3].as<float>(),
                           has_beta ? args.inputs[4].as<float>() : nullptr};
    const float* const mean = args.inputs[1].as<float>();
    const float* const rstd = args.inputs[2].as<float>();
    const WriteScales write = {args.outputs[1].as<float>(), args.outputs[2].as<float>(),
                               args.adds_into(1), args.adds_into(2), g.channels};
    float* const partial = tiles.slices > 1 ? reinterpret_cast<float*>(args.workspace) : nullptr;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = args.inputs[0].as<T>();
      const T* const dy = args.inputs.back().as<T>();
      with_wide(tiles.columns, [&](auto wide) {
        scale_gradients<T, wide.value><<<tiles.grid(), tiles.threads, 0, device.stream>>>(
            x, dy, mean, rstd, g, affine, tiles, partial, write);
      });
      if (partial != nullptr) {
        ColumnTiles both = tiles;
        both.columns *= 2;
        launch_fold_slices(partial, both, SumFold{}, write, device);
      }
      with_row_group(g.group_size(), [&](auto threads) {
        group_gradients<T, threads.value>
            <<<row_blocks(g.count(), g.group_size(), device), kRowThreads, 0, device.stream>>>(
                x, dy, mean, rstd, args.outputs[0].as<T>(), g, affine, args.adds_into(0));
      });
    });
    check_launch("the gradient of a normalisation");
  };
  return own_kernel(launch, partial_bytes(tiles, 2));
}

}  // namespace thimble
